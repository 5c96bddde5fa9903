"""How the pages of experiments and images write counts and scenes."""

from __future__ import annotations

import json
from typing import Any

from django import template

register = template.Library()


@register.filter
def thousands(count: int) -> str:
    """A whole number with commas: 12,340."""
    return f"{count:,}"


@register.filter
def pretty(data: Any) -> str:
    """JSON with indents."""
    return json.dumps(data, indent=2, ensure_ascii=False)
