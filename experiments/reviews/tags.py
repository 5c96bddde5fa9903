"""Template tags for verdicts and for names of systems, as the viewer may see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import template
from django.urls import NoReverseMatch, reverse

from experiments.core import access
from experiments.display.tags.people import names_in
from experiments.display.verdicts import Verdict, find_verdicts
from experiments.models import Adjudication, Role, Run
from experiments.reviews import actions

register = template.Library()


@register.inclusion_tag("reviews/verdict.html")
def verdict(verdicts: Mapping[int, Verdict] | str, run: Run) -> dict[str, Any]:
    """Show the verdict on a run as far as the viewer may see it. See `verdicts.find_verdicts`."""
    return {"verdict": verdicts.get(run.pk) if isinstance(verdicts, Mapping) else None}


@register.simple_tag(takes_context=True)
def system(context: template.Context, run: Run) -> str:
    """Return the name of what a run studies, as the viewer may read it. Without a viewer, the public name."""
    return names_in(context).of(run)


@register.simple_tag(takes_context=True)
def unit_page(context: template.Context, run: Run) -> str:
    """Return the URL of what a run studies; "" if the viewer has no such page."""
    if names_in(context).is_masked(run):
        return ""
    try:
        return reverse("unit", args=[run.model, run.layer, run.unit])
    except NoReverseMatch:
        return ""


@register.simple_tag(takes_context=True)
def reviews_of_run(context: template.Context, run: Run) -> dict[str, Any]:
    """Return what the run page shows of reviews: the verdict, its reason if it is final, the queues, and allowed
    actions."""
    request = context["request"]
    user, role = access.require(request), access.role_in(request) or Role.VIEWER
    items = list(run.review_items.select_related("queue", "run__owner").order_by("-pk"))
    seen = find_verdicts([run], user).get(run.pk)
    finals = Adjudication.objects.filter(item__run=run).select_related("adjudicator", "item__queue")
    return {
        "verdict": seen,
        "final": finals.first() if seen and seen.is_final else None,
        "items": items,
        "settles": next((item for item in items if seen and not actions.explain_no_verdict(user, item)), None),
        "may_put_up": actions.may_put_up(run, user, role),
    }
