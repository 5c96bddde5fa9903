"""Suggest a question for the selection, and detect a written one about something else."""

from __future__ import annotations

import re
from collections.abc import Sequence

from experiments.models import Layer, Unit
from workers.record import tasks
from workers.record.circuits import CIRCUIT


def suggestions(layer: Layer, units: Sequence[int]) -> dict[str, str]:
    """Return a suitable question for each task, from `tasks.questions`; for several units with {unit} and the like,
    which a sweep fills in."""
    if layer.kind == CIRCUIT:
        members = Unit.objects.get(layer=layer, number=units[0]).members or ()
        return tasks.questions(CIRCUIT, layer.model.name, "", len(members))
    if len(units) > 1:
        return tasks.questions(layer.kind, "{model}", "{layer}", "{unit}", "{name}" if layer.names else "")
    unit = units[0]
    return tasks.questions(layer.kind, layer.model.name, layer.name, unit, layer.name_of(unit))


NAMED_UNIT = re.compile(r"\bunit (\d{1,9})\b", re.IGNORECASE)


def find_stray_unit(question: str, units: Sequence[int]) -> str:
    """Return a warning if a question names other units than those selected; "" otherwise."""
    # Only "unit 7": other numbers in a question may mean anything.
    named = NAMED_UNIT.findall(question)
    if not named or not units:
        return ""
    if len(units) > 1:
        return (
            f"The question speaks of unit {named[0]}, but {len(units)} units are chosen: write {{unit}} where each run "
            "shall read its own."
        )
    if units[0] in map(int, named):
        return ""
    chosen = units[0]
    return f"The question speaks of unit {named[0]}, but unit {chosen} is chosen: the run would study unit {chosen}."
