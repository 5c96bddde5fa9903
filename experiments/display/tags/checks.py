"""The label check beside the label: for the team with the way to its page, for others as words alone."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils import timezone

from experiments.display.label_checks import describe_check, describe_reading
from experiments.models import LabelCheck, Run

register = template.Library()
SOON = 60.0
"""Seconds after the end of a run in which its check may be asked for."""


@register.inclusion_tag("display/label_check.html")
def label_check(check: LabelCheck | None, team: bool = True) -> dict[str, Any]:
    """A check as it is; `team`: whether who reads it may follow a link."""
    return {"mark": describe_check(check), "team": team}


@register.inclusion_tag("display/label_reading.html")
def label_reading(check: LabelCheck | None) -> dict[str, str]:
    """How the label of a check was read, where that is something else than what it says."""
    return {"words": describe_reading(check, news=True)}


@register.inclusion_tag("display/run_check.html")
def run_check(run: Run, team: bool = True, offers: bool = False) -> dict[str, Any]:
    """The check of what a run concluded; on a page of the team it is looked at again while it is on its way, and where
    there is none, `offers` one."""
    if not run.labels:
        return {}
    mark = describe_check(run.label_check)
    ended = run.ended and (timezone.now() - run.ended).total_seconds() < SOON
    follows = team and (mark.waits or (mark.pk is None and bool(ended)))
    return {"run": run, "mark": mark, "team": team, "follows": follows, "offers": offers and team}
