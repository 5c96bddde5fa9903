"""Lines, dots and axes of the larger plots as geometry; templates draw them as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.display.plots import nice

ROOM = 64
"""Width that the name of a column takes."""
LINES = 4
"""Across a plot, about."""


@dataclass(frozen=True)
class Plot:
    """An area of columns, measured from `low` to `high`."""

    columns: Sequence[str]
    low: float
    high: float
    tick: float
    """Between two lines across."""
    width: int = 960
    height: int = 320
    left: int = 46
    right: int = 14
    top: int = 20
    bottom: int = 26

    @classmethod
    def over(cls, columns: Sequence[str], values: Sequence[float], unit: float = 1.0, **shape: int) -> Plot:
        """High enough for these values, from zero or less to a round number of units."""
        known = [value / unit for value in values if math.isfinite(value)]
        low, high = min([0.0, *known]), max([0.0, *known])
        tick = nice((high - low) / LINES, (1, 2, 5, 10))
        top = math.ceil(high / tick) or 1
        return cls(columns, math.floor(low / tick) * tick * unit, top * tick * unit, tick * unit, **shape)

    @property
    def edge(self) -> int:
        """Where the columns end."""
        return self.width - self.right

    @property
    def step(self) -> float:
        return (self.edge - self.left) / max(len(self.columns), 1)

    def x(self, place: float) -> float:
        """Column `place` begins here; its middle is half a place further."""
        return round(self.left + self.step * place, 1)

    def y(self, value: float) -> float:
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(self.height - self.bottom - share * (self.height - self.top - self.bottom), 1)

    @property
    def floor(self) -> float:
        """Where zero lies."""
        return self.y(0.0)

    @property
    def values(self) -> list[float]:
        """What the lines across the plot stand for."""
        return [place * self.tick for place in range(round(self.low / self.tick), round(self.high / self.tick) + 1)]

    @property
    def names(self) -> list[tuple[float, str]]:
        """Places and words of the columns that are named."""
        every = math.ceil(len(self.columns) * ROOM / (self.edge - self.left)) or 1
        return [(self.x(place + 0.5), self.columns[place]) for place in range(0, len(self.columns), every)]

    def stairs(self, values: Sequence[float | None]) -> str:
        """The points of a line that keeps one height for each column; it begins with the first that has one."""
        known = [(place, value) for place, value in enumerate(values) if value is not None]
        return " ".join(f"{self.x(at)},{self.y(value)}" for place, value in known for at in (place, place + 1))

    def slope(self, values: Sequence[float]) -> str:
        """The points of a line that starts at zero and reaches each value at the end of its column."""
        return " ".join(f"{self.x(place)},{self.y(value)}" for place, value in enumerate([0.0, *values]))
