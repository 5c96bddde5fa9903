"""What is said in two places because one of them is a default of a form."""

from __future__ import annotations

from dataclasses import asdict

from experiments.models import run
from workers.agent import instructions
from workers.record.limits import Limits
from workers.record.tasks import TASKS


def test_limits_are_the_same_as_plain_json_and_as_a_class() -> None:
    assert run.limits() == asdict(Limits())


def test_every_task_has_its_prompt() -> None:
    names = {path.stem for path in instructions._FOLDER.glob("*.md")}
    assert set(TASKS) <= names
