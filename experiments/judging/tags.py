"""Template tag: the list of desks that wait for answers, for other pages."""

from __future__ import annotations

from typing import Any

from django import template

from experiments.core.access import role_in
from experiments.judging.waiting import list_waiting
from experiments.models import Role

register = template.Library()


@register.inclusion_tag("judging/waiting.html", takes_context=True)
def to_judge(context: Any) -> dict[str, Any]:
    """List the open desks with what the reader has left to judge. Shows nothing if there are none."""
    request = context["request"]
    return {"waiting": list_waiting(request.user), "may_judge": (role_in(request) or Role.VIEWER) >= Role.REVIEWER}
