"""Place dots side by side that would overlap: a dot plot after Wilkinson (1999), "Dot plots", The American
Statistician 53(3)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SIZE = 7.0
"""Distance between dots."""


@dataclass(frozen=True)
class DotStack:
    """Dots at one place along the axis: the index of each in the input, and its sideways offset. `more` found no
    room."""

    along: float
    places: Sequence[tuple[int, float]]
    more: int

    @property
    def count(self) -> int:
        return len(self.places) + self.more


def stack_dots(pixels: Sequence[float], room: float, size: float = SIZE) -> Iterator[DotStack]:
    """Yield stacks in which no dots overlap and none is farther than half a dot from its value. Values that are not
    finite are left out."""
    order = sorted((place for place, each in enumerate(pixels) if math.isfinite(each)), key=lambda each: pixels[each])
    fits = max(int(room // size), 1)
    before, begin = -math.inf, 0
    while begin < len(order):
        first = pixels[order[begin]]
        end = begin
        while end < len(order) and pixels[order[end]] - first < size:
            end += 1
        # In the order of the input: the last one carries the count of the others.
        members = sorted(order[begin:end])
        middle = (first + pixels[order[end - 1]]) / 2
        # A stack that would touch the previous one moves: by half a dot at most, since the next starts a dot later.
        before = round(max(middle, before + size), 1)
        some = members[:fits]
        aside = [(place - (len(some) - 1) / 2) * size for place in range(len(some))]
        yield DotStack(before, list(zip(some, aside, strict=True)), len(members) - len(some))
        begin = end
