"""Dots that would cover each other, side by side: a dot plot after Wilkinson (1999), "Dot plots", The American
Statistician 53(3)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SIZE = 7.0
"""Distance between dots that would cover each other."""


@dataclass(frozen=True)
class DotStack:
    """Dots at one place along the axis: of each its place in what was given, and how far aside it stands. `more` found
    no room."""

    along: float
    places: Sequence[tuple[int, float]]
    more: int

    @property
    def count(self) -> int:
        return len(self.places) + self.more


def stack_dots(pixels: Sequence[float], room: float, size: float = SIZE) -> Iterator[DotStack]:
    """No two of the dots overlap, and none stands farther than half a dot from its value. What is not finite is left
    out."""
    order = sorted((place for place, each in enumerate(pixels) if math.isfinite(each)), key=lambda each: pixels[each])
    fits = max(int(room // size), 1)
    before, begin = -math.inf, 0
    while begin < len(order):
        first = pixels[order[begin]]
        end = begin
        while end < len(order) and pixels[order[end]] - first < size:
            end += 1
        members = sorted(order[begin:end])
        middle = (first + pixels[order[end - 1]]) / 2
        # A stack that would touch the one before gives way: by half a dot at most, since the next begins a dot later.
        before = round(max(middle, before + size), 1)
        some = members[:fits]
        aside = [(place - (len(some) - 1) / 2) * size for place in range(len(some))]
        yield DotStack(before, list(zip(some, aside, strict=True)), len(members) - len(some))
        begin = end
