"""What the frame of every page is made of: breadcrumbs, and the designed states that pages share."""

from __future__ import annotations

from typing import Any

from django import template

from experiments.display.layout import Breadcrumb, breadcrumbs

register = template.Library()


@register.inclusion_tag("display/crumbs.html", takes_context=True)
def crumbs(context: template.Context) -> dict[str, Any]:
    """The way to this page. A view that knows better puts `crumbs` into its context: pairs of words and address."""
    given = context.get("crumbs")
    if given is not None:
        return {"crumbs": [Breadcrumb("Overview", "/"), *(Breadcrumb(words, url) for words, url in given)]}
    request = context.get("request")
    return {"crumbs": breadcrumbs(request.path) if request else []}


@register.filter
def at(mapping: Any, key: str) -> Any:
    """The value under a key that a variable names; "" if there is none."""
    return mapping.get(key, "")
