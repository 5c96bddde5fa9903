"""Images that wait for judges."""

from __future__ import annotations

from typing import Any

from django import template

from experiments.core.access import role_in
from experiments.label_checks.judging import list_waiting
from experiments.models import Role

register = template.Library()


@register.inclusion_tag("label_checks/to_judge.html", takes_context=True)
def images_to_judge(context: Any) -> dict[str, Any]:
    """Checks that wait for people to say what images show, with what is left for the reader; nothing without any."""
    request = context["request"]
    return {"waiting": list_waiting(request.user), "may_judge": (role_in(request) or Role.VIEWER) >= Role.REVIEWER}
