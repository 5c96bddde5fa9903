"""Runs that nobody works on are found again; the others are left alone."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from redis import Redis

from experiments.core import queue
from experiments.core.actors import Actor
from experiments.models import LabelCheck, Layer, Run, Unit, VisionModelRow
from experiments.runs.actions import add_runs
from tests.support.builders import make_run
from tests.support.queued import list_queued
from workers.jobs import recovery

pytestmark = [pytest.mark.usefixtures("redis_url"), pytest.mark.django_db(transaction=True)]

LONG_AGO = timezone.now() - timedelta(minutes=5)


def orphaned_run(owner: User, **fields: object) -> Run:
    """In no queue, as one that somebody plays in the foreground."""
    return make_run(owner, **({"due": LONG_AGO} | fields))


def test_it_queues_a_run_that_nobody_began(owner: User) -> None:
    run = orphaned_run(owner)
    assert list_queued() == set()
    recovery.recover()
    assert list_queued() == {run.pk}


def test_it_queues_a_run_whose_process_in_the_foreground_died(owner: User) -> None:
    run = orphaned_run(owner, status="running", lease_expires=LONG_AGO, lease_worker="dead")
    recovery.recover()
    assert list_queued() == {run.pk}


def test_it_leaves_alone_what_is_held_paused_ended_or_just_asked(owner: User) -> None:
    orphaned_run(owner, status="running", lease_expires=timezone.now() + timedelta(seconds=20))
    orphaned_run(owner, status="paused")
    orphaned_run(owner, status="concluded")
    make_run(owner)
    recovery.recover()
    assert list_queued() == set()
    assert Run.objects.filter(run_queue__isnull=False).count() == 0


def test_what_a_machine_lays_out_whose_clock_is_ahead_is_claimed_at_once(owner: User) -> None:
    ahead = timezone.now() + timedelta(hours=1)
    known = {"question": "What?", "task": "describe", "model": "toybox", "layer": "layer4", "backbone": "scripted"}
    add_runs(Actor(owner), [Run(unit=unit, limits={"rounds": 5}, due=ahead, **known) for unit in range(3)])
    assert list_queued() == set(Run.objects.values_list("pk", flat=True))


def test_enqueueing_survives_a_dead_redis_and_does_not_wait_for_it(
    owner: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from celery import current_app

    waits: list[float] = []
    monkeypatch.setattr("kombu.utils.functional.sleep", waits.append)
    monkeypatch.setattr(current_app.amqp, "_producer_pool", None)  # it keeps the address of the first broker
    run = make_run(owner)
    before, current_app.conf.broker_url = current_app.conf.broker_url, f"redis+socket://{tmp_path}/nobody.sock"
    try:
        queue.enqueue(run.pk)
    finally:
        current_app.conf.broker_url = before
    assert list_queued() == {run.pk}
    assert "No worker could be woken" in caplog.text
    assert waits == [], "a request that asks a question would take as long"


def test_checks_that_nobody_is_at_are_enqueued_again_and_no_others(redis_url: str) -> None:
    model = VisionModelRow.objects.create(name="toybox", revision="1")
    layer = Layer.objects.create(model=model, position=0, name="layer4", path="layer4", kind="conv", units=9)
    unit = Unit.objects.create(layer=layer, number=7)
    rows = [("lost", "queued", LONG_AGO), ("dead", "running", LONG_AGO), ("fresh", "queued", timezone.now())]
    rows += [("done", "done", LONG_AGO), ("unfinished", "unfinished", LONG_AGO)]
    checks = {
        name: LabelCheck.objects.create(key=name, unit=unit, text=name, options={}, status=status, beat=beat).pk
        for name, status, beat in rows
    }
    recovery.recover()
    recovery.recover()  # the lost one waits its minute again; a dead one is claimed by whoever comes first
    with Redis.from_url(redis_url) as connection:
        sent = [json.loads(message)["headers"]["id"].partition("-")[0] for message in connection.lrange("long", 0, -1)]
    asked = [int(each) for each in sent if int(each) in checks.values()]
    assert asked.count(checks["lost"]) == 1
    assert set(asked) == {checks["lost"], checks["dead"]}
