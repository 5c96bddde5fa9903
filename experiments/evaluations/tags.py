"""Figures of evaluations with their intervals, as small drawings."""

from __future__ import annotations

import math
from typing import Any

from django import template

from experiments.display.plots import Axis, Interval
from workers.record.evaluations import Figure

register = template.Library()
SHARE = Axis(0.0, 1.0, 0, 1000)
"""What most figures are: shares, correlations above 0, areas under a curve."""


@register.inclusion_tag("evaluations/interval_bar.html")
def interval_of(figure: Figure) -> dict[str, Any]:
    """A figure with its interval and its goal; on 0 to 1 where it lies there, else on an axis that holds it."""
    known = [each for each in (figure.value, figure.low, figure.high, figure.goal) if each is not None]
    if figure.value is None or not all(math.isfinite(each) and abs(each) < 1e12 for each in known):
        return {}
    low, high = min(known), max(known)
    axis = SHARE if low >= 0 and high <= 1 else Axis(min(low, 0.0), max(high, 0.0) or 1.0, 0, 1000)
    goal = None if figure.goal is None else axis.at(figure.goal)
    return {"interval": Interval.on(axis, figure.value, figure.low, figure.high), "goal": goal}


@register.filter
def is_number(value: Any) -> bool:
    """Whether a score is a figure, rather than words or a yes or no."""
    return isinstance(value, int | float) and not isinstance(value, bool)
