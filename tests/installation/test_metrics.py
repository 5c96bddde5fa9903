"""`/metrics`: who may read it, and that it says what the database and the workers know, as Prometheus reads it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from experiments.core import queue, worker_status
from experiments.models import Run
from tests import ROOT
from tests.support.builders import make_run
from tests.support.people import member
from workers.jobs import counters
from workers.jobs.heartbeat import Heartbeat

pytestmark = [pytest.mark.usefixtures("redis_url"), pytest.mark.django_db]
TOKEN = "of-the-prometheus-of-the-tests"


@pytest.fixture(autouse=True)
def with_token(settings: Any) -> None:
    settings.METRICS_TOKEN = TOKEN


def read(client: Client) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Name and labels -> value."""
    answer = client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


def tell() -> None:
    """A worker says how it is."""
    report = Heartbeat(threads=2).report() | {"name": "gpu-1:7"}
    assert worker_status.publish_status("gpu-1:7", report)


def test_strangers_find_nothing(client: Client, as_owner: Client, settings: Any) -> None:
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": TOKEN}, {"authorization": "Bearer "}):
        assert client.get("/metrics", headers=headers).status_code == 404
    assert as_owner.get("/metrics").status_code == 404
    client.force_login(member("ada", "ADMIN"))
    assert client.get("/metrics").status_code == 200
    settings.METRICS_TOKEN = ""
    assert Client().get("/metrics", headers={"authorization": "Bearer "}).status_code == 404


def test_it_counts_runs_and_what_they_took(client: Client, owner: User) -> None:
    make_run(owner, status="concluded", rounds=3, prompt_tokens=1000, completion_tokens=50, cost=0.25)
    make_run(owner, status="failed", rounds=1, prompt_tokens=500, cost=0.5)
    waiting = make_run(owner)
    queue.enqueue(waiting.pk)
    Run.objects.filter(pk=waiting.pk).update(due=timezone.now() - timedelta(seconds=300), waiting_reason="Full.")
    said = read(client)
    assert said["maia_runs", (("status", "concluded"),)] == 1
    assert said["maia_runs", (("status", "queued"),)] == 1
    assert said["maia_runs", (("status", "paused"),)] == 0
    assert said["maia_rounds_total", ()] == 4
    assert said["maia_prompt_tokens_total", ()] == 1500
    assert said["maia_cost_dollars_total", ()] == 0.75
    person = (("person", str(owner.pk)),)
    assert said["maia_queue_age_seconds", person] >= 300
    assert said["maia_queue_runs", person] == 1
    assert said["maia_held_up_runs", ()] == 1


def test_it_tells_what_workers_count(client: Client) -> None:
    counters.ROUND_SECONDS.observe(3.0)
    counters.EVENTS.labels("concluded").inc()
    before = counters.REGISTRY.get_sample_value("maia_round_seconds_count")
    tell()
    said = read(client)
    assert said["maia_workers", (("state", "ready"),)] == 1
    worker = ("worker", "gpu-1:7")
    assert said["maia_round_seconds_count", (worker,)] == before
    assert said["maia_round_seconds_bucket", (("le", "+Inf"), worker)] == before
    assert said["maia_events_total", (("kind", "concluded"), worker)] >= 1


def test_the_number_of_queries_does_not_grow(client: Client, owner: User) -> None:
    def ask() -> int:
        with CaptureQueriesContext(connection) as asked:
            read(client)
        return len(asked)

    queue.enqueue(make_run(owner).pk)
    few = ask()
    for _ in range(30):
        queue.enqueue(make_run(owner).pk)
    assert ask() == few <= 6


def test_the_documents_name_every_figure(client: Client, owner: User) -> None:
    queue.enqueue(make_run(owner).pk)
    counters.EVENTS.labels("concluded").inc()
    tell()
    told = {re.sub(r"_(bucket|count|sum)$", "", name) for name, _ in read(client)}
    text = (ROOT / "docker" / "README.md").read_text().partition("## Metrics")[2].partition("\n## ")[0]
    assert {
        name for line in text.splitlines() if line.startswith("|") for name in re.findall(r"`(maia_\w+)`", line)
    } == told
