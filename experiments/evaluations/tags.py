"""Template tags for figures with intervals, and for scores of labels."""

from __future__ import annotations

import math
from typing import Any
from urllib.parse import urlencode

from django import template
from django.urls import reverse
from django.utils.text import Truncator

from experiments.core.system_names import SystemNameMasker
from experiments.display.plots import Axis, Interval
from experiments.display.tags.maia import humanize
from experiments.evaluations import scores
from experiments.models import Run
from workers.record.evaluations import Figure
from workers.record.figures import figure

register = template.Library()
SHARE = Axis(0.0, 1.0, 0, 1000)
"""Axis of most figures: shares, positive correlations, areas under a curve."""


@register.inclusion_tag("evaluations/interval_bar.html")
def interval_of(shown: Figure) -> dict[str, Any]:
    """Render a figure with interval and goal, on an axis from 0 to 1 if it fits, else on one that contains it."""
    known = [each for each in (shown.value, shown.low, shown.high, shown.goal) if each is not None]
    # Huge or infinite values cannot be placed on an axis
    if shown.value is None or not all(math.isfinite(each) and abs(each) < 1e12 for each in known):
        return {}
    low, high = min(known), max(known)
    axis = SHARE if low >= 0 and high <= 1 else Axis(min(low, 0.0), max(high, 0.0) or 1.0, 0, 1000)
    goal = None if shown.goal is None else axis.at(shown.goal)
    return {"interval": Interval.on(axis, shown.value, shown.low, shown.high), "goal": goal}


@register.inclusion_tag("evaluations/score_plot.html", takes_context=True)
def score_plot(context: Any, by: str, model: str = "") -> dict[str, Any]:
    """Render the scores of labels, of all models or one; nothing if none was measured."""
    user = context["request"].user
    chosen = {"model": model} if model else {}
    # As this viewer may see them: scores tell how right hidden labels are.
    groups = scores.find_scores(Run.objects.filter(**chosen), by, "r", SystemNameMasker(user))
    url = f"{reverse('evaluation-scores')}?{urlencode({'by': by, **chosen})}"
    plot = scores.draw_scores(groups, by, "r", chosen)
    return {"plot": plot, "groups": groups, "most": scores.MAX_GROUPS, "noun": scores.GROUPS[by][0].lower(), "url": url}


@register.filter
def in_digits(value: float | None) -> str:
    """Format a number of a table or score. Counts have no decimals."""
    # 0 and 1 as floats are shares, so they keep their decimals
    is_count = value is not None and value == round(value) and (abs(value) >= 2 or isinstance(value, int))
    return f"{value:.0f}" if is_count and value is not None and abs(value) < 1e12 else figure(value)


@register.filter
def score_words(value: Any) -> str:
    """Write a score: a figure, words, or a yes or no."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return in_digits(value)
    return humanize(value) if value is None or isinstance(value, bool) else Truncator(value).chars(60)
