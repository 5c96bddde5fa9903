"""Show the label check beside a label: with a link for the team, for others as text."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils import timezone

from experiments.display.label_checks import describe_check, describe_reading
from experiments.models import LabelCheck, Run

register = template.Library()
SOON = 60.0
"""Seconds after the end of a run in which its check may still be requested."""


@register.inclusion_tag("display/label_check.html")
def label_check(check: LabelCheck | None, team: bool = True) -> dict[str, Any]:
    """Show a check; `team`: the reader may follow a link."""
    return {"mark": describe_check(check), "team": team}


@register.inclusion_tag("display/label_reading.html")
def label_reading(check: LabelCheck | None) -> dict[str, str]:
    """Show how the judge read the label, if that differs from the label."""
    return {"words": describe_reading(check, news=True)}


@register.inclusion_tag("display/run_check.html")
def run_check(run: Run, team: bool = True, offers: bool = False) -> dict[str, Any]:
    """Show the check of a run's conclusion. On a page of the team it is polled while pending; `offers` adds a
    button if there is none."""
    if not run.labels:
        return {}
    mark = describe_check(run.label_check)
    # A check is requested just after the end: without it, the page would stop asking too early.
    ended = run.ended and (timezone.now() - run.ended).total_seconds() < SOON
    follows = team and (mark.waits or (mark.pk is None and bool(ended)))
    return {"run": run, "mark": mark, "team": team, "follows": follows, "offers": offers and team}
