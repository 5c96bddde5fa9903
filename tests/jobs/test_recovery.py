"""Runs that nobody works on are found again; the others are left alone."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from experiments.core import notify, queue
from experiments.models import Run
from tests.support.builders import make_run
from workers.jobs import recovery

pytestmark = [pytest.mark.usefixtures("redis_url"), pytest.mark.django_db(transaction=True)]

LONG_AGO = timezone.now() - timedelta(minutes=5)


def lost_run(owner: User, **fields: object) -> Run:
    return make_run(owner, **({"enqueued": LONG_AGO} | fields))


def test_it_enqueues_a_run_that_redis_forgot(owner: User) -> None:
    run = lost_run(owner)
    recovery.recover_runs()
    assert recovery.list_queued() == {run.pk}


def test_it_enqueues_a_run_whose_worker_died(owner: User) -> None:
    run = lost_run(owner, status="running", lease_expires=LONG_AGO, lease_worker="dead")
    recovery.recover_runs()
    assert recovery.list_queued() == {run.pk}


def test_it_enqueues_no_run_twice(owner: User) -> None:
    run = lost_run(owner)
    recovery.recover_runs()
    Run.objects.update(enqueued=LONG_AGO)
    recovery.recover_runs()
    assert notify.redis().llen("rounds") == 1
    assert recovery.list_queued() == {run.pk}


def test_it_leaves_alone_what_is_held_paused_ended_or_just_enqueued(owner: User) -> None:
    lost_run(owner, status="running", lease_expires=timezone.now() + timedelta(seconds=20))
    lost_run(owner, status="paused")
    lost_run(owner, status="concluded")
    make_run(owner)
    recovery.recover_runs()
    assert recovery.list_queued() == set()


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
    assert Run.objects.get().status == "queued"
    assert f"advance {run.pk} could not be enqueued" in caplog.text
    assert waits == [], "a request that asks a question would take as long"
