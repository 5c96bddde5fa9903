"""Fill the week, scene by scene. A finished scene is never repeated; an interrupted one continues."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from django.contrib.auth.models import User
from django.db import connection

from experiments.management.demo import asking, judging
from experiments.management.demo.diary import Diary, day_before, move_back
from experiments.management.demo.team import Team, admit_team
from experiments.models import CheckStatus, Job, LabelCheck, Layer, Run, Sweep, SweepStatus, UnitProfile
from experiments.models.job import MOVING
from workers.errors import Cancelled
from workers.record.statuses import ACTIVE

LOOK_EVERY = 0.5
"""Seconds between two checks whether workers are done."""
OPEN_CHECKS = (CheckStatus.QUEUED, CheckStatus.RUNNING)


@dataclass(frozen=True)
class DemoScene:
    """A scene, and when it ended: this many days ago, at this hour."""

    words: str
    days: int
    hour: int
    play: Callable[[Team], None]


WEEK = (
    DemoScene("Units, described", 6, 10, asking.ask_units),
    DemoScene("Classes, searched for biases", 5, 11, asking.ask_classes),
    DemoScene("Neurons with a known truth", 5, 16, asking.ask_neurons),
    DemoScene("A sweep over a layer", 4, 15, asking.sweep_layer),
    DemoScene("Reviews, blind", 3, 14, judging.review_units),
    DemoScene("An evaluation", 2, 17, asking.evaluate_neurons),
    DemoScene("The same question again", 1, 10, asking.ask_again),
    DemoScene("Labels side by side", 1, 15, judging.compare_labels),
    DemoScene("A link for outsiders", 1, 17, judging.share_run),
    DemoScene("A study to publish", 1, 18, judging.publish_study),
    DemoScene("A queue that waits", 0, 0, judging.leave_queue),
)


def fill(state: Path, owner: User, say: Callable[[str], None], stopping: Event, *, small: bool = False) -> None:
    """Execute what is left of the week. Raises Cancelled between two checks once `stopping` is set."""

    def settle() -> None:
        _wait_until(_is_settled, stopping)

    try:
        diary = Diary(state)
        diary.write()
        # The first worker writes the catalogue; before that there is nothing to ask about.
        _wait_until(Layer.objects.filter(model__name=asking.NEURONS, model__available=True).exists, stopping)
        team = admit_team(owner, settle, small=small)
        for place, scene in enumerate(WEEK, 1):
            if scene.words in diary.over:
                continue
            say(f"{place} of {len(WEEK)}: {scene.words}")
            began = diary.begin(scene.words)
            scene.play(team)
            settle()
            # After all work has ended: rows that are written later would keep today's date.
            move_back(began, day_before(scene.days, scene.hour))
            diary.end(scene.words)
    finally:
        # The thread's own connection, which Django closes only after requests.
        connection.close()


def _is_settled() -> bool:
    """True if workers have finished all requests."""
    return not (
        Run.objects.filter(status__in=ACTIVE).exists()
        or Job.objects.filter(status__in=MOVING).exists()
        or Sweep.objects.filter(status=SweepStatus.RUNNING).exists()
        or LabelCheck.objects.filter(status__in=OPEN_CHECKS, waits_for_people=False).exists()
        or UnitProfile.objects.filter(written=None, problem="").exists()
    )


def _wait_until(is_so: Callable[[], bool], stopping: Event) -> None:
    """Wait. Raises Cancelled."""
    while not is_so():
        if stopping.is_set():
            raise Cancelled("The demo was stopped.")
        time.sleep(LOOK_EVERY)


def holds_other_things(state: Path) -> bool:
    """True if the installation has runs that the demo did not make."""
    return Run.objects.exists() and not Diary(state).is_there
