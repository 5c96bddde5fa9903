"""The circuits that a unit is in, and the form that adds it to one, on the page of the unit."""

from __future__ import annotations

from typing import Any

from django import template
from django.contrib.auth.models import User

from experiments.circuits import lists
from experiments.circuits.actions import CHANGES, MAX_NAME
from experiments.circuits.members import MEMBER_KINDS, find_network
from experiments.core import access
from experiments.models import Layer

register = template.Library()


@register.inclusion_tag("circuits/of_unit.html", takes_context=True)
def circuits_of_unit(context: Any, layer: Layer, number: int) -> dict[str, Any]:
    """Nothing for units that cannot be in a circuit."""
    request = context["request"]
    user = request.user
    role = access.role_in(request)
    may_add = isinstance(user, User) and (role or 0) >= CHANGES
    return {
        "offered": layer.kind in MEMBER_KINDS,
        "circuits": lists.list_circuits_of(layer, number),
        "choices": lists.list_circuits_for(user, role, {find_network(layer.model)}) if may_add else [],
        "may_add": may_add,
        "target": layer.name_of(number) if layer.kind == "logit" else "",
        "place": f"{layer.pk}.{number}",
        "max_name": MAX_NAME,
        "csrf_token": context.get("csrf_token"),
    }
