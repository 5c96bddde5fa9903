"""The rounds of a run in few enough steps for a plot or a table: alone, or together where they are many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MOST = 100
"""Steps of a plot, and rows of its table."""
EN_DASH = "\N{EN DASH}"


@dataclass(frozen=True)
class Step:
    """One round, or several in a row."""

    first: int
    last: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    @property
    def alone(self) -> bool:
        return self.first == self.last

    def __str__(self) -> str:
        return str(self.first) if self.alone else f"{self.first}{EN_DASH}{self.last}"


def step_size(count: int, most: int = MOST) -> int:
    """Rounds that go together: 1, 2 or 5 times a power of ten."""
    return next(size for size in sizes() if size * most >= count)


def sizes() -> Iterator[int]:
    unit = 1
    while True:
        yield from (unit, 2 * unit, 5 * unit)
        unit *= 10


def steps(rounds: Iterable[int], most: int = MOST) -> dict[int, Step]:
    """The step that each of these rounds belongs to, in order."""
    known = sorted(set(rounds))
    if not known:
        return {}
    size = step_size(known[-1] - known[0] + 1, most)
    if size == 1:
        return {each: Step(each, each) for each in known}
    return {
        each: Step(max(known[0], (each - 1) // size * size + 1), min(known[-1], ((each - 1) // size + 1) * size))
        for each in known
    }
