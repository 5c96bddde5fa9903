"""A figure with its interval and number of cases, and p-values adjusted for many figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A figure, its 95 % interval, and the number of cases."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    """Number of sampled cases: images, units, seeds or clusters."""
    why: str = ""
    """Why the value or the interval is missing; "" if both are present."""


FALSE_DISCOVERIES = 0.05
"""Accepted share of false discoveries when many tests are read together."""
NONE = Estimate()
"""Used if nothing was measured."""


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust p-values for the false discovery rate (Benjamini and Hochberg 1995).

    Returns them in the given order, in [0, 1]. Among those up to 0.05, at most 5 % are expected to be false. None
    and values outside [0, 1], which an imported row may have, become None and do not count as tests.
    """
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None and 0 <= p <= 1)
    adjusted: list[float | None] = [None] * len(p_values)
    least = 1.0
    # From the largest p-value down: an adjusted value never exceeds that of a larger p-value
    for rank, (p, place) in reversed(list(enumerate(known, 1))):
        least = min(least, p * len(known) / rank)
        adjusted[place] = least
    return adjusted


def is_beyond_chance(value: float | None, adjusted: float | None) -> bool:
    """True if a figure is above 0 and its p-value, adjusted for all tests beside it, is small enough."""
    return value is not None and value > 0 and adjusted is not None and adjusted <= FALSE_DISCOVERIES
