"""A figure as it is kept and shown: never without its interval and the number of cases that it rests on."""

from __future__ import annotations

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


NONE = Estimate()
"""What stands where nothing was measured."""
