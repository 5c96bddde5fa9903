"""What the frame of every page is made of: breadcrumbs, and the designed states that pages share."""

from __future__ import annotations

from typing import Any

from django import template

from experiments.display.layout import breadcrumbs

register = template.Library()


@register.inclusion_tag("display/breadcrumbs.html", takes_context=True)
def show_breadcrumbs(context: template.Context) -> dict[str, Any]:
    """The way to this page. A view that knows better puts `breadcrumbs` into its context: (words, address)."""
    given = context.get("breadcrumbs")
    if given is not None:
        return {"breadcrumbs": [("Overview", "/"), *given]}
    request = context.get("request")
    return {"breadcrumbs": breadcrumbs(request.path) if request else []}


@register.filter
def lookup(mapping: Any, key: str) -> Any:
    """The value under a key that a variable names; "" if there is none."""
    return mapping.get(key, "")
