"""The button of a list that exports what it holds, and the contents of an export in words."""

from __future__ import annotations

from typing import Any

from django import template

from experiments.exchange.export_words import describe_export

register = template.Library()


@register.inclusion_tag("exchange/exports/of_list.html", takes_context=True)
def export_list(context: template.Context, what: str, query: str = "") -> dict[str, Any]:
    """One press has a worker write a file of all that a list holds: by its address, unless a query says it."""
    kept = query or context["request"].GET.urlencode()
    return {"what": what, "query": kept, "follows": not query, "csrf_token": context.get("csrf_token")}


register.filter("describe_export", describe_export)
