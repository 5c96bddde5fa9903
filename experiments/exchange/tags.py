"""Template tags: the export button of lists, and the description of an export."""

from __future__ import annotations

from typing import Any

from django import template

from experiments.exchange.export_words import describe_export

register = template.Library()


@register.inclusion_tag("exchange/exports/of_list.html", takes_context=True)
def export_list(context: template.Context, what: str, query: str = "") -> dict[str, Any]:
    """Render a button that exports all rows of a list, by `query` or else by the address of the page."""
    kept = query or context["request"].GET.urlencode()
    return {"what": what, "query": kept, "follows": not query, "csrf_token": context.get("csrf_token")}


register.filter("describe_export", describe_export)
