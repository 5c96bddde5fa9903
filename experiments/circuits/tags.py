"""Template tags: the circuits that contain a unit, and the form that adds it to one, on the unit's page."""

from __future__ import annotations

from typing import Any

from django import template

from experiments.circuits import lists
from experiments.circuits.actions import TARGET
from experiments.circuits.members import MEMBER_KINDS, find_network
from experiments.models import Layer
from experiments.units.chosen import describe_sets

register = template.Library()


@register.inclusion_tag("units/chosen/of_unit.html", takes_context=True)
def circuits_of_unit(context: Any, layer: Layer, number: int) -> dict[str, Any]:
    """Show the circuits; nothing for units that cannot be in one."""
    if layer.kind not in MEMBER_KINDS:
        return {"target": None}
    rows, networks = lists.list_circuits_of(layer, number), {find_network(layer.model)}
    sets = describe_sets(
        context,
        TARGET,
        rows,
        lambda user, role: lists.list_circuits_for(user, role, networks),
        f"{layer.pk}.{number}",
    )
    # A logit is a class, whose page can look for the circuit behind it.
    return sets | {"class": layer.name_of(number) if layer.kind == "logit" else ""}
