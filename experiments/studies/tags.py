"""Template tags: the studies that contain a unit, and the form that adds it to one, on the unit's page."""

from __future__ import annotations

from typing import Any

from django import template

from experiments.models import Layer
from experiments.studies import lists
from experiments.studies.actions import TARGET
from experiments.units.chosen import describe_sets

register = template.Library()


@register.inclusion_tag("units/chosen/of_unit.html", takes_context=True)
def studies_of_unit(context: Any, layer: Layer, number: int) -> dict[str, Any]:
    rows = lists.list_studies_of(layer, number)
    return describe_sets(context, TARGET, rows, lists.list_studies_for, f"{layer.pk}.{number}")
