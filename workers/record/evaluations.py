"""What an evaluation found: figures with intervals, tables and plots, as pages, files and the command line show them.

Written by a worker after each item, so that a result grows while the evaluation runs; one that has stopped says how
much is unfinished. Plain typed data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CAVEAT = "Absence of evidence is not evidence of absence: what was not found may still be there."
"""Stands under every result."""


@dataclass(frozen=True)
class Figure:
    """One number by its name, with its 95 % interval and how many cases it rests on."""

    key: str
    """Dotted, as in "mono.right" or "baselines.one-shot.mono"; the last line of `--json` nests by it."""
    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    goal: float | None = None
    note: str = ""
    """What to know of it, such as the test beside it: "Wilcoxon p = 0.003, Holm 0.01"."""
    at_most: bool = False
    """Whether the goal is not to be exceeded, in place of reached."""

    @property
    def verdict(self) -> Literal["", "met", "not sure", "not met"]:
        """Whether the goal is met: not sure if the value is past it and its interval's end is not; "" without both."""
        if self.value is None or self.goal is None:
            return ""
        sign = -1 if self.at_most else 1
        if sign * (self.value - self.goal) < 0:
            return "not met"
        end = self.high if self.at_most else self.low
        return "met" if end is not None and sign * (end - self.goal) >= 0 else "not sure"


@dataclass(frozen=True)
class Cell:
    """A cell of a table: a text, or a number with its interval; `item` is the item behind it, where it is one."""

    text: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    item: int | None = None
    weak: bool = False
    """Whether it stands beside for comparison only."""


@dataclass(frozen=True)
class ResultTable:
    """A table with a heading; the first column names its rows."""

    key: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Point:
    """A point of a plot; `low` and `high` are its interval, `item` the item behind it."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    item: int | None = None
    label: str = ""


@dataclass(frozen=True)
class Series:
    """Points of one colour."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class ResultPlot:
    """A plot: "intervals" (a row for each point, by name), "line" (y against x), "front" (the same, with a line
    through the first series alone), "strip" (points by series)."""

    key: str
    title: str
    kind: str
    x: str
    y: str
    series: tuple[Series, ...]
    note: str = ""


@dataclass(frozen=True)
class ResultNote:
    """A sentence beside the figures; `named` are the items that it names, whose names come after the words."""

    words: str
    named: tuple[Cell, ...] = ()
    more: int = 0
    """How many items it counts and does not name."""

    def __str__(self) -> str:
        if not self.named:
            return self.words
        shown = ", ".join(each.text for each in self.named)
        return f"{self.words}: {shown}" + (f" and {self.more} more." if self.more else ".")


@dataclass(frozen=True)
class EvaluationResult:
    """All that an evaluation found so far."""

    figures: tuple[Figure, ...] = ()
    tables: tuple[ResultTable, ...] = ()
    plots: tuple[ResultPlot, ...] = ()
    notes: tuple[ResultNote, ...] = ()
    """Which units which source lacks, what could not be measured and why."""
