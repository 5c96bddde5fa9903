"""Measure how far two groups of values differ, beyond their means."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from statistics import fmean, variance

from workers.record.estimates import find_student
from workers.record.figures import figure


def separate(above: Sequence[float], below: Sequence[float]) -> float | None:
    """Return the AUC: the probability that one of `above` exceeds one of `below`, ties counted half, in [0, 1].
    None if a side is empty.

    It is the Mann-Whitney U over the number of pairs, and (1 + Cliff's delta) / 2: Cliff (1993), "Dominance
    statistics", Psychological Bulletin 114(3).
    """
    if not above or not below:
        return None
    # Sorted once, each search is logarithmic: all pairs would be quadratic.
    ordered = sorted(below)
    # The two places of equal values differ, so their mean counts ties half.
    wins = sum((bisect_left(ordered, each) + bisect_right(ordered, each)) / 2 for each in above)
    return wins / (len(above) * len(below))


def standardize(above: Sequence[float], below: Sequence[float]) -> float | None:
    """Return Cohen's d: the difference of the means over the pooled standard deviation, sqrt(((n1 - 1) s1² + (n2 -
    1) s2²) / (n1 + n2 - 2)). None with fewer than two values on a side, or if all values are equal.

    Cohen (1988), Statistical Power Analysis for the Behavioral Sciences, 2nd edition, section 2.2 and formula
    2.5.1.
    """
    if len(above) < 2 or len(below) < 2:
        return None
    squares = (len(above) - 1) * variance(above) + (len(below) - 1) * variance(below)
    deviation = math.sqrt(squares / (len(above) + len(below) - 2))
    return (fmean(above) - fmean(below)) / deviation if deviation else None


def describe_effect(above: Sequence[float], below: Sequence[float]) -> str:
    """Return both effect sizes in words; "" if there is none."""
    auc, d = separate(above, below), standardize(above, below)
    parts = [] if auc is None else [f"AUC {figure(auc)} (Cliff's δ {figure(2 * auc - 1)})"]
    return " · ".join(parts if d is None else [*parts, f"Cohen's d {figure(d)}"])


def bound_mean(values: Sequence[float], within: tuple[float, float] | None = None) -> tuple[float, float] | None:
    """Return the 95 % interval of a mean after Student (1908): mean ± t · s / sqrt(n). None with fewer than two
    values.

    For values `within` two ends, such as probabilities, it is computed on the logit scale of the mean, so that it
    never exceeds them: the model of Papke and Wooldridge (1996), "Econometric methods for fractional response
    variables", Journal of Applied Econometrics 11(6), with an intercept alone. It does not apply to values beyond
    the ends.
    """
    if len(values) < 2:
        return None
    mean, margin = fmean(values), find_student(len(values) - 1) * math.sqrt(variance(values) / len(values))
    if within is None or min(values) < within[0] or max(values) > within[1]:
        return mean - margin, mean + margin
    low, width = within[0], within[1] - within[0]
    share = (mean - low) / width
    # Without variance, or with a mean at an end, the logit scale has no finite interval.
    if not margin or not 0.0 < share < 1.0:
        return mean, mean
    # The delta method: d logit(p) / dp = 1 / (p (1 - p)).
    middle, aside = math.log(share / (1 - share)), margin / width / (share * (1 - share))
    return low + width * _invert_logit(middle - aside), low + width * _invert_logit(middle + aside)


def _invert_logit(value: float) -> float:
    """Return the share with this logit, without overflow at either end."""
    return 1 / (1 + math.exp(-value)) if value > 0 else 1 - 1 / (1 + math.exp(value))
