"""Template tags: the circuits that contain a unit, and the form that adds it to one, on the unit's page."""

from __future__ import annotations

from typing import Any

from django import template
from django.contrib.auth.models import User
from django.urls import reverse

from experiments.circuits import lists
from experiments.circuits.actions import CHANGES, TARGET
from experiments.circuits.members import MEMBER_KINDS, find_network
from experiments.core import access
from experiments.models import Layer

register = template.Library()


@register.inclusion_tag("units/chosen/of_unit.html", takes_context=True)
def circuits_of_unit(context: Any, layer: Layer, number: int) -> dict[str, Any]:
    """Show the circuits; nothing for units that cannot be in one."""
    if layer.kind not in MEMBER_KINDS:
        return {"target": None}
    request = context["request"]
    user = request.user
    role = access.role_in(request)
    may_add = isinstance(user, User) and (role or 0) >= CHANGES
    return {
        "target": TARGET,
        "head": "Circuits",
        "action": reverse("circuit-add"),
        "rows": lists.list_circuits_of(layer, number),
        "choices": lists.list_circuits_for(user, role, {find_network(layer.model)}) if may_add else [],
        "may_add": may_add,
        "class": layer.name_of(number) if layer.kind == "logit" else "",
        "place": f"{layer.pk}.{number}",
        "csrf_token": context.get("csrf_token"),
    }
