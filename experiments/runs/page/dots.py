"""The images of a run in the plot of activations: a dot for each, or where they are too many a mark for those of one
origin in one step, which leads to a plot of its rounds alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from django.db.models import QuerySet

from experiments.display.axes import Plot
from experiments.display.plots import spread
from experiments.display.rounds import Step
from experiments.models import Observation
from workers.record.figures import figure
from workers.record.origins import Origin

MOST = 1_200
"""Images up to which each has a dot."""


@dataclass(frozen=True)
class Dot:
    """One image."""

    x: float
    y: float
    origin: str
    words: str
    link: str


@dataclass(frozen=True)
class Mark:
    """The images of one origin in one step, from the strongest to the weakest."""

    x: float
    top: float
    bottom: float
    origin: str
    words: str
    link: str


class Counted(Protocol):
    """The images of one origin in one round."""

    @property
    def round(self) -> int: ...
    @property
    def origin(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def single(plot: Plot, chosen: QuerySet[Observation], columns: Sequence[Step]) -> list[Dot]:
    """A dot for each image, in the column of its round; those of one height stand side by side."""
    place = places(columns)
    values = chosen.order_by("experiment_id", "position").values_list(
        "experiment__round", "experiment__number", "activation", "title", "origin"
    )
    found: list[Dot] = []
    for column, group in groupby(values, key=lambda each: place[each[0]]):
        level = [(each[2], each) for each in group]
        for x, value, (number, experiment, _, title, origin) in spread(level, plot.x(column + 0.5), plot.step, plot.y):
            words = f"{title or 'untitled'}: {figure(value)}, {origin}, round {number}"
            link = f"?experiment={experiment}#experiment-{experiment}"
            found.append(Dot(x, plot.y(value), origin, words, link))
    return found


def places(columns: Sequence[Step]) -> dict[int, int]:
    """The column of each round."""
    return {number: place for place, step in enumerate(columns) for number in range(step.first, step.last + 1)}


def marks(plot: Plot, groups: Sequence[Counted], columns: Sequence[Step]) -> list[Mark]:
    """A mark for each origin in each step, side by side."""
    present = [origin.value for origin in Origin if any(group.origin == origin for group in groups)]
    return [
        mark(plot, columns[place], origin, together, plot.x(place + (present.index(origin) + 0.5) / len(present)))
        for place, origin, together in by_column(groups, places(columns))
    ]


def by_column(groups: Sequence[Counted], place: dict[int, int]) -> Iterator[tuple[int, str, list[Counted]]]:
    """The groups that one mark stands for: (column, origin, groups)."""

    def key(group: Counted) -> tuple[int, str]:
        return place[group.round], group.origin

    for (column, origin), together in groupby(sorted(groups, key=key), key=key):
        yield column, origin, list(together)


def mark(plot: Plot, step: Step, origin: str, groups: Sequence[Counted], x: float) -> Mark:
    low, high = min(group.low for group in groups), max(group.high for group in groups)
    words = f"Round {step}: {sum(group.count for group in groups)} {origin}, {figure(low)} to {figure(high)}"
    link = f"?tab=activations&from={step.first}&to={step.last}"
    return Mark(round(x, 1), plot.y(high), plot.y(low), origin, words, link)
