"""The result of an evaluation: figures with intervals, tables and plots, for pages, files and the command line.

A worker writes it after each item, so it grows while the evaluation runs. A stopped evaluation says how much is
unfinished. Plain typed data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CAVEAT = "Absence of evidence is not evidence of absence: what was not found may still be there."
"""Shown under every result."""


@dataclass(frozen=True)
class Figure:
    """A named number with its 95 % interval and number of cases."""

    key: str
    """Dotted, such as "mono.right" or "baselines.one-shot.mono". The last line of `--json` is nested by it."""
    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    goal: float | None = None
    note: str = ""
    """Remark, such as the test beside it: "Wilcoxon p = 0.003, Holm 0.01"."""
    at_most: bool = False
    """True if the goal is an upper limit."""

    @property
    def verdict(self) -> Literal["", "met", "not sure", "not met"]:
        """Whether the goal is met.

        "not sure" if the value passes the goal but its interval also holds values that do not; "" without value or
        goal.
        """
        if self.value is None or self.goal is None:
            return ""
        # The sign turns an upper limit into a lower one
        sign = -1 if self.at_most else 1
        if sign * (self.value - self.goal) < 0:
            return "not met"
        # The unfavourable end of the interval decides whether it is certain
        end = self.high if self.at_most else self.low
        return "met" if end is not None and sign * (end - self.goal) >= 0 else "not sure"


@dataclass(frozen=True)
class Cell:
    """A table cell: a text, or a number with its interval. `item` is the item that it describes, if it is one."""

    text: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    item: int | None = None
    weak: bool = False
    """True if it is shown for comparison only."""


@dataclass(frozen=True)
class ResultTable:
    """A table with a title. The first column names its rows."""

    key: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Point:
    """A point of a plot. `low` and `high` are its interval, `item` the item that it describes."""

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
    """A plot. `kind` is "intervals" (a named row for each point), "line" (y against x), "front" (the same, with a
    line through the first series only) or "strip" (points by series)."""

    key: str
    title: str
    kind: str
    x: str
    y: str
    series: tuple[Series, ...]
    note: str = ""


@dataclass(frozen=True)
class ResultNote:
    """A sentence beside the figures. `named` are the items that it lists after its words."""

    words: str
    named: tuple[Cell, ...] = ()
    more: int = 0
    """Number of items that it counts but does not name."""

    def __str__(self) -> str:
        # Named items follow a colon; words alone are a sentence already
        if not self.named:
            return self.words
        shown = ", ".join(each.text for each in self.named)
        return f"{self.words}: {shown}" + (f" and {self.more} more." if self.more else ".")


@dataclass(frozen=True)
class EvaluationResult:
    """Everything that an evaluation has found so far."""

    figures: tuple[Figure, ...] = ()
    tables: tuple[ResultTable, ...] = ()
    plots: tuple[ResultPlot, ...] = ()
    notes: tuple[ResultNote, ...] = ()
    """Which units lack a source, and what could not be measured and why."""
