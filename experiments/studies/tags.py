"""Template tags: the studies that contain a unit, and the form that adds it to one, on the unit's page."""

from __future__ import annotations

from typing import Any

from django import template

from experiments.models import Layer
from experiments.studies import lists
from experiments.studies.actions import TARGET
from experiments.units.chosen import describe_unit

register = template.Library()


@register.inclusion_tag("units/chosen/of_unit.html", takes_context=True)
def studies_of_unit(context: Any, layer: Layer, number: int) -> dict[str, Any]:
    rows = lists.list_studies_of(layer, number)
    return describe_unit(context, layer, number, TARGET, "Studies", rows, lists.list_studies_for)
