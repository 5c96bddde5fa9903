"""Numbers as geometry: the scale of a run's bars, axes with round ticks, and drawings of lines, bars and dots, which
`display/plot.html` writes as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter

from workers.record.figures import figure

SPREAD = 7.0
"""Distance between dots that would cover each other."""
LINES = 4
"""Across a drawing, about."""
THINNEST = 0.6
"""Width of a bar, at least."""


@dataclass(frozen=True)
class Scale:
    """What the bars of a run are measured on: from `low` (0, or less where there is less) to its highest activation."""

    low: float
    high: float
    exemplar_mean: float | None

    @classmethod
    def of(cls, values: Iterable[float | None], exemplar_mean: float | None) -> Scale:
        known = [value for value in [*values, exemplar_mean] if value is not None and math.isfinite(value)]
        return cls(min([0.0, *known]), max([0.0, *known]) or 1.0, exemplar_mean)

    @property
    def view_box(self) -> str:
        """The bars hold absolute activations; a growing scale only widens the window."""
        return f"{self.low:g} 0 {self.high - self.low:g} 1"

    def strength(self, value: float) -> str:
        """How warm a dot is: strong at the exemplar mean or above, weak below a quarter of the scale."""
        if value >= (self.exemplar_mean if self.exemplar_mean is not None else self.high * 0.75):
            return "strong"
        return "middle" if value > self.low + (self.high - self.low) / 4 else "weak"


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high` on pixels from `start` to `end`; what lies outside is drawn at the nearer end."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)

    @property
    def round_values(self) -> list[float]:
        """A few round values on it."""
        step = round_step((self.high - self.low) / (LINES + 2))
        return [n * step for n in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def round_step(value: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next(step * unit for step in (1, 2, 5, 10) if step * unit >= value)


@dataclass(frozen=True)
class Interval:
    """A value with its interval on an axis; `start` and `end` are None where there is none."""

    at: float
    start: float | None
    end: float | None

    @classmethod
    def on(cls, axis: Axis, value: float, low: float | None, high: float | None) -> Interval:
        start, end = (None if bound is None else axis.at(bound) for bound in (low, high))
        return cls(axis.at(value), start, end)


@dataclass(frozen=True)
class PlotLine:
    x1: float
    x2: float
    y1: float
    y2: float
    kind: str


@dataclass(frozen=True)
class Text:
    """Words beside `x` and `y`; `anchor` says which end of them lies there."""

    x: float
    y: float
    words: str
    anchor: str = "middle"
    kind: str = ""


@dataclass(frozen=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    kind: str
    words: str


@dataclass(frozen=True)
class Dot:
    """Something at a value; with a `foot`, all from this value down to that one."""

    x: float
    y: float
    kind: str
    words: str
    link: str
    foot: float | None = None


@dataclass(frozen=True)
class Shape:
    """The size of a drawing in pixels, the room around what is drawn in it, and the room that a column's name takes."""

    width: int = 960
    height: int = 320
    left: int = 46
    right: int = 14
    top: int = 20
    bottom: int = 26
    room: int = 64

    @property
    def edge(self) -> int:
        return self.width - self.right

    @property
    def floor(self) -> int:
        return self.height - self.bottom


WIDE, HALF = Shape(), Shape(470, 190, 56)
SMALL = Shape(300, 132, 30, 8, 16, 20, 32)


@dataclass
class Plot:
    """A drawing: `x` and `y` say where a value lies; whatever is added is drawn."""

    shape: Shape
    x: Axis
    y: Axis
    label: str
    grid: list[PlotLine] = field(default_factory=list)
    lines: list[PlotLine] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    dots: list[Dot] = field(default_factory=list)
    points: str = ""
    """Of a line that is drawn through them."""
    paths: list[tuple[str, str]] = field(default_factory=list)
    """Points and kind of further such lines."""

    @classmethod
    def of_columns(
        cls,
        names: Sequence[str],
        values: Iterable[float],
        label: str,
        shape: Shape = WIDE,
        words: Callable[[float], str] = "{:g}".format,
        unit: float = 1.0,
    ) -> Plot:
        """Column n lies from n to n + 1; the drawing is high enough for these values, from zero or less to a round
        number of units."""
        known = [value / unit for value in values if math.isfinite(value)]
        low, high = min([0.0, *known]), max([0.0, *known])
        step = round_step((high - low) / LINES)
        first, last = math.floor(low / step), math.ceil(high / step) or 1
        x = Axis(0, max(len(names), 1), shape.left, shape.edge)
        plot = cls(shape, x, Axis(first * step * unit, last * step * unit, shape.floor, shape.top), label)
        for n in range(first, last + 1):
            plot.add_across(n * step * unit, words(n * step * unit))
        every = math.ceil(len(names) * shape.room / (shape.edge - shape.left)) or 1
        for place in range(0, len(names), every):
            plot.add_below(place + 0.5, names[place])
        return plot

    def add_across(self, value: float, words: str) -> None:
        """A line behind all else, with its words at the left."""
        self.grid.append(self._across(value, "across"))
        self.texts.append(Text(self.shape.left - 6, self.y.at(value), words, "end"))

    def add_level(self, value: float) -> None:
        self.lines.append(self._across(value, "level"))

    def _across(self, value: float, kind: str) -> PlotLine:
        y = self.y.at(value)
        return PlotLine(self.shape.left, self.shape.edge, y, y, kind)

    def add_below(self, value: float, words: str) -> None:
        self.texts.append(Text(self.x.at(value), self.shape.floor + 14, words))

    def add_upright(self, value: float, words: str, row: int, kind: str) -> None:
        """A line at one value of `x`, its words beside its head; those of another row never cover them."""
        x, y = self.x.at(value), 8 + 13 * row
        self.lines.append(PlotLine(x, x, y - 5, self.shape.floor, kind))
        is_right = x > self.shape.width * 0.62
        self.texts.append(Text(x - 5 if is_right else x + 5, y, words, "end" if is_right else "start", "note"))

    def add_bar(self, start: float, end: float, low: float, high: float, kind: str, words: str) -> None:
        x, top = self.x.at(start), self.y.at(high)
        width = max(round(self.x.at(end) - x, 1), THINNEST)
        self.bars.append(Bar(x, top, width, round(self.y.at(low) - top, 1), kind, words))

    def add_dot(self, x: float, y: float, kind: str, words: str, link: str = "") -> None:
        """A dot at a place in pixels."""
        self.dots.append(Dot(x, y, kind, words, link))

    def add_path(self, points: Iterable[tuple[float, float]], kind: str) -> None:
        """A line through these values."""
        self.paths.append((self._place(points), kind))

    def add_mark(self, place: float, low: float, high: float, kind: str, words: str, link: str) -> None:
        self.dots.append(Dot(self.x.at(place), self.y.at(high), kind, words, link, self.y.at(low)))

    def add_dots(self, column: int, dots: Iterable[tuple[float, str, str, str]]) -> None:
        """(value, kind, words, link) of one column; those at nearly the same height stand side by side, closer where
        they are many."""
        levels: dict[int, list[tuple[float, str, str, str]]] = {}
        for each in dots:
            levels.setdefault(int(self.y.at(each[0]) // SPREAD), []).append(each)
        middle = self.x.at(column + 0.5)
        width = max(self.x.at(1) - self.x.at(0) - 8, 0.0)
        for level in levels.values():
            apart = min(SPREAD, width / len(level))
            for place, (value, kind, words, link) in enumerate(level):
                x = round(middle + (place - (len(level) - 1) / 2) * apart, 1)
                self.dots.append(Dot(x, self.y.at(value), kind, words, link))

    def draw_steps(self, values: Sequence[float | None]) -> None:
        """A line that keeps one height for each column; it begins with the first that has one."""
        known = [(place, value) for place, value in enumerate(values) if value is not None]
        self._draw_through((at, value) for place, value in known for at in (place, place + 1))

    def draw_sums(self, values: Sequence[float]) -> None:
        """A line that starts at zero and reaches each value at the end of its column."""
        self._draw_through(enumerate([0.0, *values]))

    def _draw_through(self, points: Iterable[tuple[float, float]]) -> None:
        self.points = self._place(points)

    def _place(self, points: Iterable[tuple[float, float]]) -> str:
        return " ".join(f"{self.x.at(place)},{self.y.at(value)}" for place, value in points)


def activation_plot(values: Sequence[tuple[int, float, str]], scale: Scale) -> Plot:
    """The small plot beside a transcript, of (round, activation, title) triples that are sorted by round."""
    rounds = sorted({number for number, _, _ in values})
    names = [f"round {number}" if len(rounds) < 5 else str(number) for number in rounds]
    label = f"Activations of {len(values)} image{'s' * (len(values) != 1)} by round"
    plot = Plot.of_columns(names, [scale.low, scale.high], label, SMALL)
    if scale.exemplar_mean is not None:
        words = f"exemplar mean {figure(scale.exemplar_mean)}"
        plot.label += f"; {words}"
        plot.add_level(scale.exemplar_mean)
        plot.texts.append(Text(SMALL.edge, 5, f"- - {words}", "end", "note"))
    for column, (number, group) in enumerate(groupby(values, key=itemgetter(0))):
        link = f"#round-{number}"
        plot.add_dots(
            column, ((value, scale.strength(value), f"{title}: {figure(value)}", link) for _, value, title in group)
        )
    return plot
