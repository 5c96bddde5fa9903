"""A unit's activations over a dataset as geometry: how many images reach which activation. Drawn by a template."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from experiments.display.plots import nice
from workers.record.figures import figure

WIDTH, HEIGHT = 560, 180
LEFT, RIGHT, TOP, BOTTOM = 40, 12, 34, 24


@dataclass(frozen=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    title: str
    strong: bool
    """At the threshold or above."""


@dataclass(frozen=True)
class Mark:
    """A line at one activation; words at `text_x`, on one of two lines so that two marks never cover each other."""

    x: float
    value: float
    words: str
    kind: str
    line: int
    end: bool
    """Whether the words stand left of the line."""


@dataclass(frozen=True)
class Distribution:
    """Heights are logarithmic: most images leave most units near 0. `ticks` are (y, count), `values` (x, figure)."""

    bars: Sequence[Bar]
    marks: Sequence[Mark]
    ticks: Sequence[tuple[float, str]]
    values: Sequence[tuple[float, str]]
    images: int
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def distribution(histogram: dict[str, Any], threshold: float | None, quantile: float | None) -> Distribution | None:
    """The histogram of a profile; None if nobody knows one."""
    counts, start, width = histogram.get("counts") or [], histogram.get("start", 0.0), histogram.get("width", 0.0)
    known = [value for value in (threshold, quantile) if value is not None]
    low, high = min([start, *known]), max([start + width * len(counts), *known])
    if not counts or not math.isfinite(high - low) or high <= low:
        return None

    def x(value: float) -> float:
        return round(LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT), 2)

    most = math.log10(1 + max(counts))

    def y(count: float) -> float:
        return round(HEIGHT - BOTTOM - math.log10(1 + count) / most * (HEIGHT - TOP - BOTTOM), 2)

    bars = [
        bar(x, y, start + n * width, start + (n + 1) * width, count, threshold)
        for n, count in enumerate(counts)
        if count
    ]
    powers = [10**power for power in range(int(math.log10(max(counts))) + 1)]
    ticks = [(y(count), f"{count:,}") for count in powers[:: math.ceil(len(powers) / 4)]]
    return Distribution(bars, marks(x, threshold, quantile), ticks, axis(x, low, high), sum(counts))


def bar(x: Any, y: Any, start: float, end: float, count: int, threshold: float | None) -> Bar:
    left, top = x(start), y(count)
    title = f"{count:,} image{'' if count == 1 else 's'} from {figure(start)} to {figure(end)}"
    strong = threshold is not None and end > threshold
    return Bar(left, top, round(max(x(end) - left - 0.6, 0.6), 2), round(HEIGHT - BOTTOM - top, 2), title, strong)


def marks(x: Any, threshold: float | None, quantile: float | None) -> list[Mark]:
    found = [("threshold", "exemplar mean", threshold, 0), ("quantile", "mask edge", quantile, 1)]
    return [
        Mark(x(value), value, words, kind, 11 + 13 * line, x(value) > WIDTH * 0.62)
        for kind, words, value, line in found
        if value is not None
    ]


def axis(x: Any, low: float, high: float) -> list[tuple[float, str]]:
    """A few round activations."""
    step = nice((high - low) / 6)
    first = math.ceil(low / step)
    return [(x(n * step), f"{n * step:g}") for n in range(first, math.floor(high / step) + 1)]
