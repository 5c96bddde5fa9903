"""A figure as it is kept and shown: never without its interval and the number of cases that it rests on; p-values where
there are many figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A figure, its 95 % interval and how many it rests on."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    """Of what was sampled: images, units, seeds, clusters."""
    why: str = ""
    """Why there is no value or no interval; "" where both are there."""


FALSE_DISCOVERIES = 0.05
"""Expected share of false ones among what is called beyond chance where many tests are read at once."""
NONE = Estimate()
"""What stands where nothing was measured."""


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """p-values adjusted for the share of false discoveries (Benjamini and Hochberg 1995), for many tests at once.

    In the order given, in [0, 1]; among those up to 0.05 at most 5 % are expected to be false. None, a test that could
    not be made, becomes None and does not count, nor does what no test can give: an imported row may hold any number.
    """
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None and 0 <= p <= 1)
    adjusted: list[float | None] = [None] * len(p_values)
    least = 1.0
    for rank, (p, place) in reversed(list(enumerate(known, 1))):
        least = min(least, p * len(known) / rank)
        adjusted[place] = least
    return adjusted


def is_beyond_chance(value: float | None, adjusted: float | None) -> bool:
    """Whether a figure is above 0 by a p-value that was adjusted for all the tests beside it."""
    return value is not None and value > 0 and adjusted is not None and adjusted <= FALSE_DISCOVERIES
