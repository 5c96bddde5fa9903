"""A full disk and a database that is away: the run waits, says for what, loses nothing, and goes on by itself."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError

from experiments.core.outages import explain_outage
from experiments.core.sweep_totals import explain_wait
from experiments.models import Run
from tests.support.tiny_run import CONCLUSION, LOOK, Seeing, install, kinds, tiny_run
from workers.errors import MachineryError, Outage
from workers.jobs import laboratory as place
from workers.jobs import lease, rounds

pytestmark = [pytest.mark.usefixtures("redis_url"), pytest.mark.django_db(transaction=True)]

SEEN = ("A red square.", "A blue square.")
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
AWAY = OperationalError("server closed the connection unexpectedly")


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    install(monkeypatch, settings, tmp_path)
    place.build_laboratory.cache_clear()


def run_agent(run: Run) -> Run:
    """A round as a thread of a worker plays it."""
    claimed = lease.claim(run.pk)
    assert claimed
    rounds.execute_claimed(claimed)
    return Run.objects.get(pk=run.pk)


@pytest.mark.parametrize(("trouble", "words"), [(FULL, "no room left on the disk"), (AWAY, "The database does not")])
def test_a_run_waits_for_the_end_of_an_outage(owner: User, trouble: Exception, words: str) -> None:
    """However often it is met: a step that fails for another reason three times ends the run."""
    run = tiny_run(owner, Seeing([trouble] * 7 + [LOOK], CONCLUSION, sentences=SEEN))
    for _ in range(7):
        run = run_agent(run)
        assert run.status == "running"
        assert words in explain_wait(run)
        assert run.claims == 0, "it is not this run that kills workers"
    assert kinds(run) == ["started"]
    run = run_agent(run)
    assert explain_wait(run) == ""
    assert run_agent(run).status == "concluded"
    assert kinds(run) == ["started", "reply", "experiment", "result", "reply", "concluded"]


def test_what_breaks_in_a_worker_that_ends_is_not_counted_against_the_run(owner: User) -> None:
    class Stopped(Seeing):
        def reply(self, *args: Any) -> Any:
            lease.stopping.set()
            raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    run = tiny_run(owner, Stopped())
    try:
        run_agent(run)
    finally:
        lease.stopping.clear()
    assert kinds(run) == ["started"]


def test_a_worker_that_stood_still_asks_for_nothing_that_another_may_have_recorded(owner: User) -> None:
    backbone = Seeing(LOOK, CONCLUSION, sentences=SEEN)
    run = tiny_run(owner, backbone)
    claimed = lease.claim(run.pk)
    assert claimed
    Run.objects.filter(pk=run.pk).update(fence=claimed.fence + 1)  # another's claim, once the lease had lapsed
    rounds.execute_claimed(claimed)
    assert backbone.asked == []
    assert kinds(run) == []


def test_other_errors_are_no_outage() -> None:
    assert explain_outage(ValueError("broken")) == ""
    assert explain_outage(FileNotFoundError(errno.ENOENT, "none")) == ""
    assert explain_outage(MachineryError("trouble")) == ""


def test_an_outage_is_found_behind_the_error_that_it_caused() -> None:
    caused = MachineryError("The index could not be written.")
    caused.__cause__ = FULL
    assert "no room left" in explain_outage(caused)
    assert explain_outage(Outage("The bucket is away.")) == "The bucket is away."
