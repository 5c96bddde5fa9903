"""Units that a person chose on a layer's page or among search results, and their runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Model
from django.forms.boundfield import BoundField
from django.http import HttpRequest, QueryDict
from django.shortcuts import get_object_or_404
from django.urls import reverse

from experiments.core import access
from experiments.core.errors import StateConflict
from experiments.core.params import clean_text, parse_key, parse_number
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.models import Layer, Role, Run
from experiments.units.unit_ranges import read_stretches
from workers.record.statuses import ENDED, Status

Row = TypeVar("Row", bound=Model)
COMPARED, QUEUED = 6, 1_000
"""Maximum runs that are compared, or queued for review."""


@dataclass(frozen=True)
class Target:
    """What chosen units are added to, circuits or studies: the field for a new one's name, its maximum length, and
    the name of the list of existing ones."""

    noun: str
    plural: str
    field: str
    longest: int
    offered: str


class ChooseTarget(forms.Form):
    """A name for a new circuit or study, or one of those that the user may change, `choices`."""

    def __init__(self, target: Target, choices: Iterable[Any], sent: Mapping[str, Any] | None = None) -> None:
        super().__init__(sent, auto_id=f"{target.noun}-%s")
        self.target, options = target, [(each.pk, f"{each} ({each.size})") for each in choices]
        # The browser requires a name only if there is no existing row to choose.
        attributes = {"maxlength": target.longest, "placeholder": target.field.capitalize(), "required": not options}
        self.fields[target.field] = forms.CharField(
            label=f"New {target.noun}", required=False, widget=forms.TextInput(attributes)
        )
        if options:
            offered = forms.Select(choices=options)
            self.fields[target.noun] = forms.CharField(label=target.offered, required=False, widget=offered)

    @property
    def new(self) -> BoundField:
        return self[self.target.field]

    @property
    def existing(self) -> BoundField | None:
        return self[self.target.noun] if self.target.noun in self.fields else None


def describe_sets(
    context: Any, target: Target, rows: Iterable[Any], offer: Callable[[User, Role | None], Iterable[Any]], place: str
) -> dict[str, Any]:
    """Return what a unit's page shows: the circuits or studies that contain the unit, and the form that adds it."""
    request = context["request"]
    user, role = request.user, access.role_in(request)
    # Guests of a shared page have no account, and no role.
    may_add = isinstance(user, User) and (role or 0) >= Role.RESEARCHER
    return {
        "target": target,
        "rows": rows,
        "form": ChooseTarget(target, offer(user, role)) if may_add else None,
        "action": reverse(f"{target.noun}-add"),
        "place": place,
        "csrf_token": context.get("csrf_token"),
    }


def read_numbers(given: QueryDict, layer: Layer) -> list[int]:
    """Return the units that a form names: single ones as `unit`, or ranges, "0-11,40", in `units`."""
    numbers = {parse_number(typed) for typed in given.getlist("unit")}
    try:
        # The cut bounds the work on a request from elsewhere.
        numbers |= set(read_stretches(given.get("units", "")[:100_000], layer.units))
    except ValueError:
        # A broken list selects nothing, rather than only its readable part.
        numbers.clear()
    return sorted(number for number in numbers if number is not None and number < layer.units)


def read_places(given: QueryDict) -> list[tuple[Layer, int]]:
    """Return the units of any layers that a form names, each once: as `member`, "LAYER.UNIT" by the key of the
    layer, and those of one layer, by `model`, `layer` and the fields of `read_numbers`. Missing ones are left out."""
    pairs = [typed.partition(".") for typed in given.getlist("member")]
    known = Layer.objects.select_related("model").in_bulk({parse_key(key) for key, _, _ in pairs})
    found = [(known.get(parse_key(key)), parse_number(number)) for key, _, number in pairs]
    places = [(row, number) for row, number in found if row and number is not None and number < row.units]
    name, layer_name = (clean_text(given.get(field, "")) for field in ("model", "layer"))
    if row := Layer.objects.select_related("model").filter(model__name=name, name=layer_name).first():
        places += [(row, number) for number in read_numbers(given, row)]
    # Each once, in the order of the form.
    return list(dict.fromkeys(places))


def put_together(
    request: HttpRequest,
    target: Target,
    rows: type[Row],
    count: int,
    create: Callable[[str], Row],
    extend: Callable[[int], int],
) -> Row | None:
    """Add `count` chosen units to a new or an existing row, show a message, and return the row; None if the form
    does not say which. `extend` takes a key and returns how many were added. Raises InvalidInput, Http404."""
    act = request.POST.get("act")
    if act == "create":
        row = create(request.POST.get(target.field, ""))
        messages.success(request, f"Created “{row}”.")
        return row
    if act == "extend":
        row = get_object_or_404(rows, pk=parse_key(request.POST.get(target.noun)))
        added = extend(row.pk)
        # Units that were in it before are no error, but are told.
        there = count - added
        words = f" {there} {'is' if there == 1 else 'are'} in it already." if there else ""
        messages.success(request, f"Added {added} to “{row}”.{words}")
        return row
    return None


def find_runs(layer: Layer, numbers: Sequence[int], names: SystemNameMasker, most: int) -> list[int]:
    """Return for each unit its newest run with a conclusion, else the newest ended one. Raises StateConflict with
    the problem."""
    if not numbers:
        raise StateConflict("Choose units first: tick them, or take all that the filter shows.")
    of_units = Run.objects.filter(model=layer.model.name, layer=layer.name, unit__in=numbers)
    rows = visible_to(of_units.filter(status__in=ENDED))
    newest: dict[int, tuple[bool, int]] = {}
    for unit, pk, status in rows.exclude(names.are_hidden()).order_by().values_list("unit", "pk", "status"):
        # Pairs compare the conclusion first, then the newer key.
        newest[unit] = max(newest.get(unit, (False, 0)), (status == Status.CONCLUDED, pk))
    runs = [newest[number][1] for number in numbers if number in newest]
    if not runs:
        raise StateConflict(f"No run on {_format_numbers(numbers)} has ended: start some first.")
    # Only the comparison has a minimum; a queue of one run is fine.
    if most == COMPARED and not 2 <= len(runs) <= most:
        raise StateConflict(
            f"2 to {most} runs are compared, and {len(runs)} of {_format_numbers(numbers)} have one that ended."
        )
    return runs[:most]


def _format_numbers(numbers: Sequence[int]) -> str:
    return f"unit {numbers[0]}" if len(numbers) == 1 else f"these {len(numbers):,} units"
