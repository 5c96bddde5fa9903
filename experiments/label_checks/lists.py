"""Label checks by where their unit is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from experiments.core.system_names import Names
from experiments.core.visibility import visible_to
from experiments.display.label_checks import HEAVY
from experiments.models import CheckStatus, EvaluationItem, LabelCheck, Run


def place_of(row: EvaluationItem | LabelCheck) -> tuple[str, str, int] | None:
    """Model, layer and unit; None where the catalogue has it no more."""
    unit = row.unit
    return None if unit is None else (unit.layer.model.name, unit.layer.name, unit.number)


def list_checks(params: Mapping[str, str], names: Names) -> QuerySet[LabelCheck]:
    """The checks that an address chooses by status, model, layer, unit, run; the newest first. Those of a system that
    the viewer may not know are not found by it. Those of a run are all checks of what it concluded, by any judge."""
    rows = visible_to(LabelCheck.objects.select_related("unit__layer__model")).defer(*HEAVY)
    if (status := params.get("status", "")) in CheckStatus.values:
        rows = rows.filter(status=status)
    columns = {"model": "unit__layer__model__name", "layer": "unit__layer__name", "unit": "unit__number"}
    asked: dict[str, Any] = {column: params[name] for name, column in columns.items() if params.get(name)}
    if run := params.get("run"):
        checked = visible_to(Run.objects.filter(pk=run)).values_list("label_check__unit", "label_check__text").first()
        asked |= dict(zip(("unit", "text"), checked or (None, None), strict=True))
    if asked:
        hidden = names.are_hidden_at(*columns.values())
        rows = rows.filter(**asked).exclude(hidden)
    return rows
