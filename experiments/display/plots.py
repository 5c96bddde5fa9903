"""Numbers as geometry: the run's own scale, and the chart of activations by round. Drawn by templates as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from workers.record.figures import figure

T = TypeVar("T")
WIDTH, HEIGHT = 300, 132
LEFT, RIGHT, TOP, BOTTOM = 30, 8, 16, 20
SPREAD = 7.0
"""Distance between dots that would cover each other."""


@dataclass(frozen=True)
class Scale:
    """What the bars of a run are measured on: from `low` (0, or less where there is less) to its highest activation."""

    low: float
    high: float
    threshold: float | None

    @classmethod
    def of(cls, values: Iterable[float | None], threshold: float | None) -> Scale:
        known = [value for value in [*values, threshold] if value is not None and math.isfinite(value)]
        return cls(min([0.0, *known]), max([0.0, *known]) or 1.0, threshold)

    @property
    def view_box(self) -> str:
        """The bars hold absolute activations; a growing scale only widens the window."""
        return f"{self.low:g} 0 {self.high - self.low:g} 1"


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    strength: str
    title: str
    round: int


@dataclass(frozen=True)
class Chart:
    """Activations over rounds. `ticks` are (y, figure) pairs, `rounds` (x, number) pairs."""

    dots: Sequence[Dot]
    ticks: Sequence[tuple[float, str]]
    rounds: Sequence[tuple[float, int]]
    threshold_y: float | None
    threshold: float | None
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT


def chart(values: Sequence[tuple[int, float, str]], scale: Scale) -> Chart:
    """The chart of (round, activation, title) triples, sorted by round."""
    top = nice(scale.high)
    bottom = -nice(-scale.low) if scale.low < 0 else 0.0

    def y(value: float) -> float:
        return round(HEIGHT - BOTTOM - (value - bottom) / (top - bottom) * (HEIGHT - TOP - BOTTOM), 1)

    numbers = sorted({number for number, _, _ in values})
    step = (WIDTH - LEFT - RIGHT) / max(len(numbers), 1)
    middle = {number: round(LEFT + step * (place + 0.5), 1) for place, number in enumerate(numbers)}
    dots = [
        Dot(x, y(value), strength(value, scale), f"{title}: {figure(value)}", number)
        for number, group in groupby(values, key=lambda each: each[0])
        for x, value, title in spread([(value, title) for _, value, title in group], middle[number], step, y)
    ]
    ticks = [(y(value), f"{value:g}") for value in (bottom, (bottom + top) / 2, top)]
    every = math.ceil(len(numbers) / 8) or 1
    shown = [(middle[number], number) for number in numbers[::every]]
    threshold_y = None if scale.threshold is None else y(scale.threshold)
    return Chart(dots, ticks, shown, threshold_y, scale.threshold)


def spread(
    group: Sequence[tuple[float, T]], middle: float, step: float, y: Callable[[float], float]
) -> Iterator[tuple[float, float, T]]:
    """Dots of one column; those at nearly the same height stand side by side, closer where they are many."""
    levels: dict[int, list[tuple[float, T]]] = {}
    for value, what in group:
        levels.setdefault(int(y(value) // SPREAD), []).append((value, what))
    width = max(step - 8, 0.0)
    for level in levels.values():
        apart = min(SPREAD, width / len(level))
        for place, (value, what) in enumerate(level):
            yield round(middle + (place - (len(level) - 1) / 2) * apart, 1), value, what


def strength(value: float, scale: Scale) -> str:
    """How warm a dot is: strong at the threshold or above, weak below a quarter of the scale."""
    if value >= (scale.threshold if scale.threshold is not None else scale.high * 0.75):
        return "strong"
    return "middle" if value > scale.low + (scale.high - scale.low) / 4 else "weak"


ROUND = (1, 2, 3, 4, 5, 6, 8, 10, 20)


def nice(value: float, steps: Sequence[int] = ROUND) -> float:
    """The next of these steps times a power of ten."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next(step * unit for step in steps if step * unit >= value)
