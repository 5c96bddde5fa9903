"""Template tags: the circuits that contain a unit, and the form that adds it to one, on the unit's page."""

from __future__ import annotations

from typing import Any

from django import template
from django.contrib.auth.models import User
from django.db.models import QuerySet

from experiments.circuits import lists
from experiments.circuits.actions import TARGET
from experiments.circuits.members import MEMBER_KINDS, find_network
from experiments.models import Circuit, Layer, Role
from experiments.units.chosen import describe_unit

register = template.Library()


@register.inclusion_tag("units/chosen/of_unit.html", takes_context=True)
def circuits_of_unit(context: Any, layer: Layer, number: int) -> dict[str, Any]:
    """Empty for units that cannot be in a circuit."""
    if layer.kind not in MEMBER_KINDS:
        return {"target": None}
    network, rows = find_network(layer.model), lists.list_circuits_of(layer, number)

    def offer(user: User, role: Role | None) -> QuerySet[Circuit]:
        return lists.list_circuits_for(user, role, {network})

    described = describe_unit(context, layer, number, TARGET, "Circuits", rows, offer)
    return described | {"class": layer.name_of(number) if layer.kind == "logit" else ""}
