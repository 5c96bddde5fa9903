"""Scale a run's bars, and axes with round ticks at both ends."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from workers.record.figures import MINUS

LINES = 4
"""Approximate number of lines across a drawing."""
MAX_VALUE = 1e12
"""Larger values are not measurements, and would flatten all others."""


@dataclass(frozen=True)
class Scale:
    """Scale of a run's bars: from `low` (0, or the lowest activation if negative) to its highest activation."""

    low: float
    high: float
    exemplar_mean: float | None

    @classmethod
    def of(cls, values: Iterable[float | None], exemplar_mean: float | None) -> Scale:
        known = [value for value in [*values, exemplar_mean] if value is not None and math.isfinite(value)]
        # A scale of width 0 cannot be drawn.
        return cls(min([0.0, *known]), max([0.0, *known]) or 1.0, exemplar_mean)

    @property
    def view_box(self) -> str:
        """Return the SVG view box. Bars hold absolute activations, so a growing scale only widens it."""
        return f"{self.low:g} 0 {self.high - self.low:g} 1"

    def strength(self, value: float) -> str:
        """Return the strength of a dot: strong at the exemplar threshold or above, weak below a quarter of the
        scale."""
        # Without a threshold, the top quarter counts as strong.
        if value >= (self.exemplar_mean if self.exemplar_mean is not None else self.high * 0.75):
            return "strong"
        return "middle" if value > self.low + (self.high - self.low) / 4 else "weak"


@dataclass(frozen=True)
class Axis:
    """Map values from `low` to `high` to pixels from `start` to `end`; values outside are drawn at the nearer end."""

    low: float
    high: float
    start: float
    end: float
    step: float = 0.0
    """Distance between ticks; 0 chooses one."""

    def at(self, value: float) -> float:
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)

    @property
    def round_values(self) -> list[float]:
        """Return a few round values on the axis."""
        step = self.step or round_step((self.high - self.low) / (LINES + 2))
        # Rounding errors must not drop a tick at an end, as of 0.3 / 0.1.
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [n * step for n in range(first, last + 1)]


def write_tick(value: float) -> str:
    """Format a round value without useless decimals, with a real minus sign."""
    # + 0.0 turns -0.0 into 0.
    return f"{round(value, 10) + 0.0:,.10g}".replace("-", MINUS)


def round_step(value: float) -> float:
    """Return the next 1, 2 or 5 times a power of ten."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next(step * unit for step in (1, 2, 5, 10) if step * unit >= value)


def fit_axis(values: Iterable[float | None], start: float, end: float, unit: float = 1.0, lines: int = 7) -> Axis:
    """Return an axis between round values, each with a tick, which includes zero unless all values are far from it.

    Values slightly below zero get no whole step: the axis then ends there. `unit`: ticks are round multiples of it;
    `lines`: approximate maximum of ticks.
    """
    known = [each / unit for each in values if each is not None and math.isfinite(each) and abs(each) < MAX_VALUE]
    low, high = min(known, default=0.0), max(known, default=1.0)
    # Zero is included unless it would leave more than half of the axis empty.
    low, high = (0.0 if 0 < low < 0.6 * high else low), (0.0 if 0.6 * low < high < 0 else high)
    # All values equal: any step will do.
    step = round_step((high - low) / lines or 0.2)
    first, last = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    # Slightly negative values, such as noise around zero, would get a whole empty step.
    if low < 0 < high and -low < 0.25 * step:
        first = low
    # A single value still gets an axis of one step.
    return Axis(first * unit, (last if last > first else first + step) * unit, start, end, step * unit)


@dataclass(frozen=True)
class Interval:
    """A value with its interval on an axis; `start` and `end` are None without an interval."""

    at: float
    start: float | None
    end: float | None

    @classmethod
    def on(cls, axis: Axis, value: float, low: float | None, high: float | None) -> Interval:
        start, end = (None if bound is None else axis.at(bound) for bound in (low, high))
        return cls(axis.at(value), start, end)
