"""Where values lie: the scale of a run's bars, and axes with round ticks at both ends."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from workers.record.figures import MINUS

LINES = 4
"""Across a drawing, about."""
LARGEST = 1e12
"""What is larger is no measurement, and would flatten all others."""


@dataclass(frozen=True)
class Scale:
    """What the bars of a run are measured on: from `low` (0, or less where there is less) to its highest activation."""

    low: float
    high: float
    exemplar_mean: float | None

    @classmethod
    def of(cls, values: Iterable[float | None], exemplar_mean: float | None) -> Scale:
        known = [value for value in [*values, exemplar_mean] if value is not None and math.isfinite(value)]
        return cls(min([0.0, *known]), max([0.0, *known]) or 1.0, exemplar_mean)

    @property
    def view_box(self) -> str:
        """The bars hold absolute activations; a growing scale only widens the window."""
        return f"{self.low:g} 0 {self.high - self.low:g} 1"

    def strength(self, value: float) -> str:
        """How warm a dot is: strong at the exemplar threshold or above, weak below a quarter of the scale."""
        if value >= (self.exemplar_mean if self.exemplar_mean is not None else self.high * 0.75):
            return "strong"
        return "middle" if value > self.low + (self.high - self.low) / 4 else "weak"


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high` on pixels from `start` to `end`; what lies outside is drawn at the nearer end."""

    low: float
    high: float
    start: float
    end: float
    step: float = 0.0
    """Between its ticks; 0 for whatever makes a few of them."""

    def at(self, value: float) -> float:
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)

    @property
    def round_values(self) -> list[float]:
        """A few round values on it."""
        step = self.step or round_step((self.high - self.low) / (LINES + 2))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [n * step for n in range(first, last + 1)]


def write_tick(value: float) -> str:
    """A round value without decimals that say nothing, with a real minus sign."""
    return f"{round(value, 10) + 0.0:,.10g}".replace("-", MINUS)


def round_step(value: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next(step * unit for step in (1, 2, 5, 10) if step * unit >= value)


def fit_axis(values: Iterable[float | None], start: float, end: float, unit: float = 1.0, lines: int = 7) -> Axis:
    """From a round value to a round value, each with a tick; with zero unless all lie far from it. What lies a little
    below zero gets no whole step of its own: the axis then ends there. `unit`: what ticks are round numbers of;
    `lines`: how many there are at most, about."""
    known = [each / unit for each in values if each is not None and math.isfinite(each) and abs(each) < LARGEST]
    low, high = min(known, default=0.0), max(known, default=1.0)
    low, high = (0.0 if 0 < low < 0.6 * high else low), (0.0 if 0.6 * low < high < 0 else high)
    step = round_step((high - low) / lines or 0.2)
    first, last = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    if low < 0 < high and -low < 0.25 * step:
        first = low
    return Axis(first * unit, (last if last > first else first + step) * unit, start, end, step * unit)


@dataclass(frozen=True)
class Interval:
    """A value with its interval on an axis; `start` and `end` are None where there is none."""

    at: float
    start: float | None
    end: float | None

    @classmethod
    def on(cls, axis: Axis, value: float, low: float | None, high: float | None) -> Interval:
        start, end = (None if bound is None else axis.at(bound) for bound in (low, high))
        return cls(axis.at(value), start, end)
