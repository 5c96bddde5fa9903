"""Claims from the database: turns between people and sweeps, loaded models first, each run to one thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from experiments.core import queue
from experiments.models import Run, RunQueue, Sweep
from tests.support.builders import make_run
from workers.jobs import claims
from workers.jobs.claims import MAX_ALIKE, Claimer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def quiet(redis_url: str) -> str:
    return redis_url


def queued(owner: User, sweep: Sweep | None = None, **fields: object) -> Run:
    run = make_run(owner, sweep=sweep, **fields)
    queue.enqueue(run.pk)
    return Run.objects.get(pk=run.pk)


def swept(owner: User, priority: float = 1.0) -> Sweep:
    sweep = Sweep.objects.create(owner=owner, name="All", question="What?", task="describe", selection={})
    RunQueue.objects.create(owner=owner, sweep=sweep, weight=priority)
    return sweep


def claim(claimer: Claimer | None = None, *, seconds: float = 10.0) -> Run | None:
    """The next claim, whose round takes so many seconds and leaves the run to be claimed again."""
    run = (claimer or Claimer(list)).claim()
    if run is not None:
        claims.charge_queue(run, seconds)
    return run


def owners(count: int) -> list[str]:
    return [run.owner.get_username() for run in (claim() for _ in range(count)) if run]


def test_without_runs_there_is_nothing_to_claim(owner: User) -> None:
    assert claim() is None
    make_run(owner)  # nobody put it into a queue: whoever asked plays it
    assert claim() is None


def test_people_take_turns_however_much_one_of_them_asked(owner: User, teammate: User) -> None:
    for _ in range(10):
        queued(owner)
    first = claim()
    assert first is not None
    queued(teammate)
    assert owners(2).count(teammate.get_username()) == 1, "not the second claim at the latest"
    assert owners(3) == [owner.get_username()] * 3


def test_a_run_under_way_goes_before_one_that_waits(owner: User) -> None:
    queued(owner)
    begun = queued(owner, status="running")
    assert claim() == begun


def test_runs_of_people_go_before_those_of_sweeps(owner: User, teammate: User) -> None:
    sweep = swept(teammate)
    of_sweep, of_person = queued(teammate, sweep), queued(owner)
    assert [claim(), claim(), claim()] == [of_person, of_sweep, None]


def test_two_sweeps_share_time_by_weight(owner: User) -> None:
    heavy, light = swept(owner, 4.0), swept(owner, 1.0)
    for sweep in (heavy, light):
        for _ in range(30):
            queued(owner, sweep)
    served = [run.sweep_id for run in (claim() for _ in range(25)) if run]
    assert served.count(heavy.pk) == 20


@pytest.mark.parametrize("fields", [{"status": "paused"}, {"status": "concluded"}, {"lease": 60}, {"due": 60}])
def test_what_stands_still_ended_is_held_or_not_due_is_left_alone(owner: User, fields: dict[str, object]) -> None:
    run = queued(owner)
    later = timezone.now() + timedelta(seconds=60)
    changed = {"lease": {"lease_expires": later, "status": "running"}, "due": {"due": later}}
    Run.objects.filter(pk=run.pk).update(**next((changed[name] for name in changed if name in fields), fields))
    assert claim() is None


def test_a_run_whose_lease_lapsed_is_claimed_again_without_anybody_asking(owner: User) -> None:
    run = queued(owner, status="running", lease_expires=timezone.now() - timedelta(seconds=1), fence=4)
    taken = claim()
    assert taken == run
    assert taken is not None
    assert taken.fence == 5


def test_a_closed_flow_is_left_alone(owner: User) -> None:
    sweep = swept(owner)
    run = queued(owner, sweep)
    RunQueue.objects.filter(sweep=sweep).update(enabled=False)
    assert claim() is None
    RunQueue.objects.filter(sweep=sweep).update(enabled=True)
    assert claim() == run


def test_a_sweep_is_asked_in_its_own_order_whatever_was_saved_first(owner: User) -> None:
    sweep = swept(owner)
    for place in (3, 1, 2):
        queued(owner, sweep, sweep_place=place, model="toybox" if place > 1 else "other")
    assert [run.sweep_place for run in (claim() for _ in range(3)) if run] == [1, 2, 3]


def test_runs_of_a_loaded_model_go_first_but_only_so_many_in_a_row(owner: User) -> None:
    others = [queued(owner, model="other") for _ in range(3)]
    loaded = [queued(owner, model="loaded") for _ in range(MAX_ALIKE + 5)]
    claimer = Claimer(lambda: ["nobody's", "loaded"])
    order = [claim(claimer) for _ in range(len(others) + len(loaded))]
    assert order[: MAX_ALIKE + 2] == [*loaded[:MAX_ALIKE], others[0], loaded[MAX_ALIKE]]
    assert {run.pk for run in order if run} == {run.pk for run in [*others, *loaded]}


def test_many_threads_claim_each_run_once(owner: User, teammate: User) -> None:
    runs = {queued(person).pk for person in (owner, teammate) for _ in range(20)}

    def take(_: int) -> list[int]:
        claimer, taken = Claimer(list), []
        while run := claimer.claim():
            taken.append(run.pk)
        connection.close()
        return taken

    with ThreadPoolExecutor(6) as threads:
        found = [pk for taken in threads.map(take, range(6)) for pk in taken]
    assert sorted(found) == sorted(runs)
    assert set(Run.objects.values_list("fence", flat=True)) == {1}


def test_a_worker_goes_on_with_what_it_played_lately(owner: User) -> None:
    """Though another run of the queue is first; what it made for this one is still in its memory."""
    first, second, third = queued(owner), queued(owner), queued(owner)
    claimer = Claimer(list, lambda: [second.pk])
    assert claim(claimer) == second
    assert claim(claimer) == first, "somebody holds the second"
    assert claim(claimer) == third
