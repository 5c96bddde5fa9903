"""Where the time of a run went: the pieces add up to what the head of its page shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.core import transcript
from experiments.display.events import seconds_of_work
from experiments.models import Run
from experiments.runs.page.timeline import draw_timeline, read_timeline
from tests.support.builders import experiment, make_run, replied, started
from tests.support.pictures import logged
from workers.record.events import Ended, Paused, Resumed

pytestmark = pytest.mark.django_db

BEGIN = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


def play(owner: User, seconds: float, *, pauses: bool = False) -> Run:
    """Two rounds of 4 s of reply, 1 s of program and 2 s of tools, an event every 10 s; paused for an hour between."""
    run = make_run(owner)
    transcript.append(run.pk, "started", started())
    for number in (1, 2):
        if pauses and number == 2:
            transcript.append(run.pk, "paused", Paused(1, "Ada"))
            transcript.append(run.pk, "resumed", Resumed(1, "Ada"))
        transcript.append(run.pk, "reply", replied(number, seconds=4.0))
        transcript.append(run.pk, "experiment", experiment(number))
        transcript.append(run.pk, "result", logged(number=number, seconds=1.0, tool_seconds=2.0))
    transcript.append(run.pk, "concluded", Ended())
    at = BEGIN
    for event in run.events.order_by("seq"):
        at += timedelta(hours=1) if event.kind == "resumed" else timedelta(seconds=10)
        run.events.filter(pk=event.pk).update(time=at)
    Run.objects.filter(pk=run.pk).update(seconds=seconds)
    run.refresh_from_db()
    return run


@pytest.mark.parametrize("seconds", [14.0, 25.5, 63.0, 500.0, 6.0])
@pytest.mark.parametrize("pauses", [False, True])
def test_the_pieces_add_up_to_the_time_in_the_head(owner: User, seconds: float, pauses: bool) -> None:
    run = play(owner, seconds, pauses=pauses)
    found = read_timeline(run)
    assert found.total == seconds_of_work(run) == seconds
    assert sum(each.seconds for each in found.segments) == pytest.approx(seconds)
    plot = draw_timeline(found)
    assert plot
    assert max(bar.x + bar.width for bar in plot.bars) == pytest.approx(plot.shape.edge, abs=3)


def test_what_no_event_tells_is_other_and_what_was_no_work_is_told_apart(owner: User) -> None:
    found = read_timeline(play(owner, 24.0, pauses=True))
    by_kind = {
        kind: sum(each.seconds for each in found.segments if each.kind == kind)
        for kind in ("part-0", "part-1", "part-2", "part-other")
    }
    assert by_kind == pytest.approx({"part-0": 8.0, "part-1": 2.0, "part-2": 4.0, "part-other": 10.0})
    assert found.still["paused"] == 3600.0
    assert found.still["waited for a worker"] > 0


def test_the_tab_shows_it(as_owner: Client, owner: User) -> None:
    run = play(owner, 24.0, pauses=True)
    page = as_owner.get(f"/runs/{run.pk}/?tab=cost").content.decode()
    assert "Timeline" in page
    assert "paused 1 h 0 min" in page


def test_a_run_that_did_nothing_has_none(owner: User) -> None:
    assert draw_timeline(read_timeline(make_run(owner))) is None
