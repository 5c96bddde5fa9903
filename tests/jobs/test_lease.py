"""One worker at a time holds a run; a dead one loses it; a slow one records nothing more."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from experiments.core import transcript
from experiments.models import Run
from tests.support.builders import make_run, started
from workers.jobs import lease


@pytest.mark.django_db(transaction=True)
def test_it_gives_the_run_to_one_of_many_claimants(owner: User) -> None:
    run = make_run(owner)

    def claim(_: int) -> bool:
        taken = lease.claim(run.pk)
        connection.close()
        return taken is not None

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(claim, range(16))) == 1
    assert Run.objects.get().fence == 1


def test_it_gives_a_run_whose_lease_ran_out_to_the_next_with_a_higher_fence(owner: User) -> None:
    run = make_run(owner, status="running", fence=4, lease_expires=timezone.now() - timedelta(seconds=1))
    taken = lease.claim(run.pk)
    assert taken is not None
    assert taken.fence == 5


@pytest.mark.parametrize("status", ["paused", "waiting", "concluded", "limit_reached", "cancelled", "failed"])
def test_it_claims_no_run_that_is_not_active(owner: User, status: str) -> None:
    assert lease.claim(make_run(owner, status=status).pk) is None


@pytest.mark.django_db(transaction=True)
def test_it_gives_the_lease_back_at_the_end(owner: User) -> None:
    run = lease.claim(make_run(owner).pk)
    assert run is not None
    with lease.hold_lease(run):
        assert lease.claim(run.pk) is None
    assert lease.claim(run.pk) is not None


@pytest.mark.django_db(transaction=True)
def test_its_heartbeat_renews_the_lease_and_notices_its_loss(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "HEARTBEAT", 0.02)
    run = lease.claim(make_run(owner).pk)
    assert run is not None
    Run.objects.update(lease_expires=timezone.now())
    with lease.hold_lease(run) as lost:
        while not Run.objects.get().is_leased():
            assert not lost.wait(0.01)
        Run.objects.update(fence=99)
        assert lost.wait(10)
    assert Run.objects.get().lease_expires is not None, "the next holder's lease was given back by the last one"


def test_it_counts_claims_until_an_event_is_recorded(owner: User) -> None:
    run = make_run(owner)
    for _ in range(3):
        assert lease.claim(run.pk)
        Run.objects.update(lease_expires=None)
    assert Run.objects.get().claims == 3
    transcript.append(run.pk, "started", started())
    assert Run.objects.get().claims == 0
