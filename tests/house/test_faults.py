"""Killed workers and a stopped Redis: the run goes on where its record ends, and nothing is lost or done twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.installation import Installation, installed

pytestmark = [pytest.mark.timeout(900), pytest.mark.more]

PATIENCE = 300.0
"""Seconds: a worker that starts again beside other tests takes a minute before it claims anything."""


@pytest.fixture(scope="module")
def site(quick_state: Path):
    """An installation whose scripted scientist writes slowly enough for somebody to come in between."""
    with installed(quick_state, "--no-example", MAIA_WORDS_PER_SECOND="150") as installation:
        installation.link()
        yield installation


LONG_AGO = "2026-01-01 00:00:00+00:00"
ASK = """
from django.contrib.auth.models import User
from experiments.core import queue
from experiments.models import Run
run = Run.objects.create(owner=User.objects.get(), question="What?", task="describe", model="toybox", layer="layer4",
    unit={unit}, backbone="scripted", limits={{"rounds": {rounds}}})
queue.enqueue(run.pk)
print(run.pk)
"""


def ask(site: Installation, unit: int = 12, rounds: int = 3) -> int:
    """Queue a run as the page does."""
    return int(site.manage("shell", "-v0", "-c", ASK.format(unit=unit, rounds=rounds)))


STANDS = """SELECT status, reason, waiting_reason, rounds, last_seq, claims, lease_worker, lease_expires, due
    FROM experiments_run WHERE id = ?"""


def status(site: Installation, run: int) -> str:
    return str(site.rows("SELECT status FROM experiments_run WHERE id = ?", run)[0][0])


def wait_for_event(site: Installation, run: int, kind: str) -> None:
    query = "SELECT count(*) FROM experiments_event WHERE run_id = ? AND kind = ?"
    site.until(lambda: site.rows(query, run, kind)[0][0], f"run {run} never came to a {kind}", PATIENCE)


def assert_whole(site: Installation, run: int) -> None:
    """The run came to its last round, and its story is whole."""
    try:
        site.until(lambda: status(site, run) in {"concluded", "limit_reached"}, f"run {run} did not end", PATIENCE)
    except AssertionError as error:
        raise AssertionError(f"{error}\nIts row: {site.rows(STANDS, run)}") from None
    kinds = assert_one_story(site, run)
    assert kinds.count("experiment") == kinds.count("result")


def assert_one_story(site: Installation, run: int) -> list[str]:
    """The run's events have no gap, and no reply or experiment stands there twice; their kinds."""
    events = site.rows(
        "SELECT seq, kind, payload ->> 'round' FROM experiments_event WHERE run_id = ? ORDER BY seq", run
    )
    assert [seq for seq, _, _ in events] == list(range(1, len(events) + 1))
    steps = Counter((kind, number) for _, kind, number in events if kind in ("reply", "experiment", "result"))
    assert set(steps.values()) == {1}
    return [kind for _, kind, _ in events]


def test_a_run_goes_on_after_its_worker_was_killed(site: Installation) -> None:
    run = ask(site)
    wait_for_event(site, run, "result")
    kill_worker(site)
    assert_whole(site, run)


STEER = """
from django.contrib.auth.models import User
from experiments.runs.forks import lineage as forks
from experiments.runs.steering import actions as steering
from experiments.runs.forks.form import ForkForm
from experiments.models import Run
from experiments.core.actors import Actor
from experiments.runs.actions import ask
by, run = Actor(User.objects.get()), Run.objects.get(pk={run})
{do}
"""
FORK = """
print(ask(by, ForkForm(run, forks.find_fork_point(run, 1), {"note": "Look again."})).pk)
"""


def steer(site: Installation, run: int, do: str) -> str:
    """What a person does to the run meanwhile, in a process of its own."""
    return site.manage("shell", "-v0", "-c", STEER.format(run=run, do=do))


def kill_worker(site: Installation) -> None:
    """With kill -9; the lease would lapse in 30 s, which the test does not wait for."""
    site.child("celery", "worker").kill()
    site.change("UPDATE experiments_run SET lease_expires = ?, due = ?", LONG_AGO, LONG_AGO)


def test_a_pause_outlives_its_workers_and_a_fork_begins_whole(site: Installation) -> None:
    run = ask(site, unit=12, rounds=25)
    wait_for_event(site, run, "reply")
    steer(site, run, "steering.pause(by, run.pk)")
    kill_worker(site)
    wait_for_event(site, run, "paused")
    played = site.rows("SELECT rounds, experiment_count FROM experiments_run WHERE id = ?", run)[0]
    assert played[0] == played[1], "the round under way was finished first"
    kill_worker(site)
    steer(site, run, "steering.send_note(by, run.pk, 'Welcome back.')\nsteering.resume(by, run.pk)")
    fork = int(steer(site, run, FORK))
    wait_for_event(site, fork, "started")
    kill_worker(site)
    for each, rounds in ((run, played[0] + 1), (fork, 2)):
        query = "SELECT 1 FROM experiments_run WHERE id = ? AND rounds >= ?"
        site.until(lambda: site.rows(query, each, rounds), f"run {each} did not go on", PATIENCE)  # noqa: B023
    assert "resumed" in assert_one_story(site, run)
    said = ["note"] * (played[0] == 1)  # it belongs to the round that the run was paused after
    beginning = ["started", "reply", "experiment", "result", *said, "forked", "note"]
    assert assert_one_story(site, fork)[: len(beginning)] == beginning


def test_a_run_goes_on_after_redis_was_killed(site: Installation) -> None:
    run = ask(site, unit=3)
    wait_for_event(site, run, "reply")
    site.child("redis").kill()
    assert_whole(site, run)


def test_nothing_is_left_of_an_installation_that_was_killed(quick_state_copy: Path) -> None:
    import psutil

    with installed(quick_state_copy, "--no-example") as installation:
        installation.link()
        family = psutil.Process(installation.process.pid).children(recursive=True)
        installation.process.kill()
        gone, alive = psutil.wait_procs(family, timeout=20)
    assert gone
    assert not alive
