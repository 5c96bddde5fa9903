"""Units of a layer that somebody chose on its page, and the runs that stand for them."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import QueryDict

from experiments.core.errors import StateConflict
from experiments.core.params import parse_number
from experiments.core.system_names import Names
from experiments.core.visibility import visible_to
from experiments.models import Layer, Run
from experiments.units.stretches import read_stretches
from workers.record.statuses import ENDED, Status

COMPARED, QUEUED = 6, 1_000
"""Runs that are compared, or queued for review, at most."""


def read_numbers(given: QueryDict, layer: Layer) -> list[int]:
    """The units that a form names: one by one as `unit`, or as stretches, "0-11,40", in `units`."""
    numbers = {parse_number(typed) for typed in given.getlist("unit")}
    try:
        numbers |= set(read_stretches(given.get("units", "")[:100_000], layer.units))
    except ValueError:
        numbers.clear()
    return sorted(number for number in numbers if number is not None and number < layer.units)


def find_runs(layer: Layer, numbers: Sequence[int], names: Names, most: int) -> list[int]:
    """The newest run of each that concluded, else the newest that ended. Raises StateConflict with what is wrong."""
    if not numbers:
        raise StateConflict("Choose units first: tick them, or take all that the filter shows.")
    of_units = Run.objects.filter(model=layer.model.name, layer=layer.name, unit__in=numbers)
    rows = visible_to(of_units.filter(status__in=ENDED))
    newest: dict[int, tuple[bool, int]] = {}
    for unit, pk, status in rows.exclude(names.are_hidden()).order_by().values_list("unit", "pk", "status"):
        newest[unit] = max(newest.get(unit, (False, 0)), (status == Status.CONCLUDED, pk))
    runs = [newest[number][1] for number in numbers if number in newest]
    if not runs:
        raise StateConflict(f"No run on {_say(numbers)} has ended: start some first.")
    if most == COMPARED and not 2 <= len(runs) <= most:
        raise StateConflict(f"2 to {most} runs are compared, and {len(runs)} of {_say(numbers)} have one that ended.")
    return runs[:most]


def _say(numbers: Sequence[int]) -> str:
    return f"unit {numbers[0]}" if len(numbers) == 1 else f"these {len(numbers):,} units"
