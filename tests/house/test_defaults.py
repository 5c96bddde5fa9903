"""What pages and laboratory must agree on, though neither may import the other."""

from __future__ import annotations

from dataclasses import asdict

from experiments.models import run
from experiments.models.run import Status
from workers.agent import instructions
from workers.record.events import ENDS, Limits
from workers.registry import TASKS


def test_limits_are_the_same_on_both_sides() -> None:
    assert run.limits() == asdict(Limits())


def test_the_longest_question_is_the_same_on_both_sides() -> None:
    assert run.QUESTION_CHARS == instructions.MOST_QUESTION_CHARS


def test_every_end_of_a_run_is_a_status() -> None:
    assert {status.value for status in run.ENDED} == ENDS
    assert run.ENDED | run.ACTIVE | {Status.PAUSED, Status.WAITING} == set(Status)


def test_every_task_has_its_prompt() -> None:
    names = {path.stem for path in instructions._FOLDER.glob("*.md")}
    assert set(TASKS) <= names
