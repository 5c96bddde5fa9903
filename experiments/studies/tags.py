"""Template tags: the studies that contain a unit, and the form that adds it to one, on the unit's page."""

from __future__ import annotations

from typing import Any

from django import template
from django.contrib.auth.models import User
from django.urls import reverse

from experiments.core import access
from experiments.models import Layer
from experiments.studies import lists
from experiments.studies.actions import CHANGES, TARGET

register = template.Library()


@register.inclusion_tag("units/chosen/of_unit.html", takes_context=True)
def studies_of_unit(context: Any, layer: Layer, number: int) -> dict[str, Any]:
    request = context["request"]
    user = request.user
    role = access.role_in(request)
    may_add = isinstance(user, User) and (role or 0) >= CHANGES
    return {
        "target": TARGET,
        "head": "Studies",
        "action": reverse("study-add"),
        "rows": lists.list_studies_of(layer, number),
        "choices": lists.list_studies_for(user, role) if may_add else [],
        "may_add": may_add,
        "place": f"{layer.pk}.{number}",
        "csrf_token": context.get("csrf_token"),
    }
