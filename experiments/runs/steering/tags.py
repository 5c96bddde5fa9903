"""What people did to a run, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import template

from workers.record import limits

register = template.Library()


@register.filter
def limits_changed(payload: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Of an event "limits": name, what held before, what holds now."""
    return limits.changes(payload.get("before") or {}, payload["limits"])
