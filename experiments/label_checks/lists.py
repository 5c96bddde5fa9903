"""Lists of label checks by unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from django.db.models import Q

from experiments.api.fields import RowNumber
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display.label_checks import HEAVY
from experiments.display.narrowing import (
    Filter,
    Narrowed,
    choice_filter,
    equal_number,
    index_filters,
    narrow_down,
)
from experiments.models import CheckStatus, EvaluationItem, LabelCheck, Run
from experiments.runs.filters import place_filters

_PLACE = ("unit__layer__model__name", "unit__layer__name", "unit__number")


def place_of(row: EvaluationItem | LabelCheck) -> tuple[str, str, int] | None:
    """Return (model, layer, unit); None if the unit left the catalogue."""
    unit = row.unit
    return None if unit is None else (unit.layer.model.name, unit.layer.name, unit.number)


def _by_run(text: str) -> Q:
    """Return a condition for all checks of a run's conclusion, by any judge."""
    run = visible_to(Run.objects.filter(equal_number("pk", "run")(text)))
    # By unit and text: a run may have checks by several judges
    unit, label = run.values_list("label_check__unit", "label_check__text").first() or (None, None)
    return Q(unit=unit, text=label)


FILTERS = index_filters(
    choice_filter("status", "Status", CheckStatus, CheckStatus.choices),
    *place_filters(*_PLACE),
    Filter("run", "Run", _by_run, RowNumber, "all checks of its conclusion", hint="its number", input="numeric"),
)
"""By name in the address, for the API and exports."""


def checks_from(params: Mapping[str, str], names: SystemNameMasker) -> Narrowed:
    """Return the checks that an address selects, newest first. Filters by place do not find hidden systems."""
    rows = visible_to(LabelCheck.objects.select_related("unit__layer__model")).defer(*HEAVY)
    found = narrow_down(rows, params, FILTERS)
    by_place = found.values.keys() - {"status"}
    return replace(found, rows=found.rows.exclude(names.are_hidden_at(*_PLACE))) if by_place else found
