"""What waits to be judged, as a list on other pages."""

from __future__ import annotations

from typing import Any

from django import template

from experiments.core.access import role_in
from experiments.judging.waiting import list_waiting
from experiments.models import Role

register = template.Library()


@register.inclusion_tag("judging/waiting.html", takes_context=True)
def to_judge(context: Any) -> dict[str, Any]:
    """What waits for people to judge it, with what is left for the reader; nothing where nothing waits."""
    request = context["request"]
    return {"waiting": list_waiting(request.user), "may_judge": (role_in(request) or Role.VIEWER) >= Role.REVIEWER}
