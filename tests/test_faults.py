"""Killed workers and a stopped Redis: the run goes on where its record ends, and nothing is lost or done twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.installation import Installation, installed

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def site(quick_state: Path):
    """An installation whose scripted scientist writes slowly enough to be interrupted."""
    with installed(quick_state, "--no-example", MAIA_WORDS_PER_SECOND="150") as installation:
        installation.link()
        yield installation


LONG_AGO = "2026-01-01 00:00:00+00:00"
ASK = """
from django.contrib.auth.models import User
from experiments.models import Run
run = Run.objects.create(owner=User.objects.get(), question="What?", task="describe", model="toybox", layer="layer4",
    unit={unit}, backbone="scripted", limits={{"rounds": 25}}, enqueued="{enqueued}")
print(run.pk)
"""


def ask(site: Installation, unit: int = 12) -> int:
    """Queue a run as the page does, but without the message to Redis: the sweeper has to find it."""
    return int(site.manage("shell", "-v0", "-c", ASK.format(unit=unit, enqueued=LONG_AGO)))


def status(site: Installation, run: int) -> str:
    return str(site.rows("SELECT status FROM experiments_run WHERE id = ?", run)[0][0])


def wait_for_event(site: Installation, run: int, kind: str) -> None:
    query = "SELECT count(*) FROM experiments_event WHERE run_id = ? AND kind = ?"
    site.until(lambda: site.rows(query, run, kind)[0][0], f"run {run} never came to a {kind}", 90)


def assert_whole(site: Installation, run: int) -> None:
    """The run concluded; its events have no gap, and no reply or experiment stands there twice."""
    site.until(lambda: status(site, run) == "concluded", f"run {run} did not conclude", 90)
    events = site.rows(
        "SELECT seq, kind, payload ->> 'round' FROM experiments_event WHERE run_id = ? ORDER BY seq", run
    )
    assert [seq for seq, _, _ in events] == list(range(1, len(events) + 1))
    steps = Counter((kind, number) for _, kind, number in events if kind in ("reply", "experiment", "result"))
    assert set(steps.values()) == {1}
    kinds = [kind for _, kind, _ in events]
    assert kinds.count("experiment") == kinds.count("result")


def test_a_run_goes_on_after_its_worker_was_killed(site: Installation) -> None:
    run = ask(site)
    wait_for_event(site, run, "result")
    site.child("celery", "worker").kill()
    # The lease would lapse in 30 s; the test does not wait for it.
    site.change("UPDATE experiments_run SET lease_expires = ?, enqueued = ?", LONG_AGO, LONG_AGO)
    assert_whole(site, run)


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
