"""Lists of label checks by unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display.label_checks import HEAVY
from experiments.models import CheckStatus, EvaluationItem, LabelCheck, Run


def place_of(row: EvaluationItem | LabelCheck) -> tuple[str, str, int] | None:
    """Return (model, layer, unit); None if the unit left the catalogue."""
    unit = row.unit
    return None if unit is None else (unit.layer.model.name, unit.layer.name, unit.number)


def list_checks(params: Mapping[str, str], names: SystemNameMasker) -> QuerySet[LabelCheck]:
    """Return the checks that an address selects by status, model, layer, unit or run, newest first. Filters by place do
    not find hidden systems. A run selects all checks of its conclusion, by any judge."""
    rows = visible_to(LabelCheck.objects.select_related("unit__layer__model")).defer(*HEAVY)
    if (status := params.get("status", "")) in CheckStatus.values:
        rows = rows.filter(status=status)
    columns = {"model": "unit__layer__model__name", "layer": "unit__layer__name", "unit": "unit__number"}
    asked: dict[str, Any] = {column: params[name] for name, column in columns.items() if params.get(name)}
    if run := params.get("run"):
        # By unit and text: a run may have checks by several judges
        checked = visible_to(Run.objects.filter(pk=run)).values_list("label_check__unit", "label_check__text").first()
        asked |= dict(zip(("unit", "text"), checked or (None, None), strict=True))
    if asked:
        hidden = names.are_hidden_at(*columns.values())
        rows = rows.filter(**asked).exclude(hidden)
    return rows
