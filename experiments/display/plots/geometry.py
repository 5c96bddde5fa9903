"""Hold a drawing as lists of lines, bars, dots and texts at their pixels, with its numbers as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from experiments.display.plots.axes import Axis, fit_axis, write_tick
from experiments.display.plots.stacking import SIZE, stack_dots
from workers.record.figures import figure

THINNEST = 0.6
"""Minimum width of a bar."""
TIMES = "\N{MULTIPLICATION SIGN}"
Cell = str | int | float | None


@dataclass(frozen=True)
class PlotLine:
    x1: float
    x2: float
    y1: float
    y2: float
    kind: str


@dataclass(frozen=True)
class Text:
    """Text beside `x` and `y`; `anchor` says which end of it lies there."""

    x: float
    y: float
    words: str
    anchor: str = "middle"
    kind: str = ""


@dataclass(frozen=True)
class Bar:
    """A bar, which may have a `link`. `text` is drawn in its middle."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    words: str
    link: str = ""
    text: str = ""

    @property
    def middle(self) -> tuple[float, float]:
        return round(self.x + self.width / 2, 1), round(self.y + self.height / 2, 1)


@dataclass(frozen=True)
class Dot:
    """A dot at a value; with a `foot`, a line from this value down to that one."""

    x: float
    y: float
    kind: str
    words: str
    link: str
    foot: float | None = None
    picture: str = ""
    """Address of the image that it represents."""


@dataclass(frozen=True)
class PlotTable:
    """The numbers of a plot. A row's first cell may be a link: `links` has an address, or "", for each."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    links: Sequence[str] = ()

    @property
    def linked_rows(self) -> list[tuple[str, list[tuple[str, bool]]]]:
        """Return for each row its address, and for each cell its text and whether it is a number."""
        # Tables without links give an empty list.
        links = [*self.links, *[""] * (len(self.rows) - len(self.links))]
        return [(link, [_describe_cell(cell) for cell in row]) for link, row in zip(links, self.rows, strict=False)]


def _describe_cell(cell: Cell) -> tuple[str, bool]:
    if isinstance(cell, str) or cell is None:
        return cell or "", False
    return f"{cell:,}" if isinstance(cell, int) else figure(cell), True


@dataclass(frozen=True)
class PlotShape:
    """The size of a drawing in pixels, its margins, and the room for a column's name."""

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


WIDE, HALF = PlotShape(), PlotShape(470, 190, 56)
SMALL = PlotShape(300, 132, 34, 8, 16, 20, 32)


@dataclass
class Plot:
    """A drawing: `x` and `y` map values to pixels; added marks are drawn. `label` describes it to people who cannot
    see it."""

    shape: PlotShape
    x: Axis
    y: Axis
    label: str
    kind: str = ""
    grid: list[PlotLine] = field(default_factory=list)
    lines: list[PlotLine] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    dots: list[Dot] = field(default_factory=list)
    points: str = ""
    """Points of a line."""
    paths: list[tuple[str, str]] = field(default_factory=list)
    """Points and kind of further lines."""
    legend: list[tuple[str, str]] = field(default_factory=list)
    """Kind and name of each colour."""
    note: str = ""
    """Text below the plot."""
    table: PlotTable | None = None

    @classmethod
    def of_columns(
        cls,
        names: Sequence[str],
        values: Iterable[float],
        label: str,
        shape: PlotShape = WIDE,
        words: Callable[[float], str] = write_tick,
        unit: float = 1.0,
    ) -> Plot:
        """Return a plot in which column n lies from n to n + 1; high enough for these values, from zero or less to
        a round number of units."""
        y = fit_axis([0.0, *values], shape.floor, shape.top, unit, lines=5)
        plot = cls(shape, Axis(0, max(len(names), 1), shape.left, shape.edge), y, label)
        plot.add_ticks_across(words)
        plot.name_columns(names)
        return plot

    def name_columns(self, names: Sequence[str]) -> None:
        """Add the names below; of many, every n-th."""
        # The double minus rounds up.
        every = -(-len(names) * self.shape.room // (self.shape.edge - self.shape.left)) or 1
        for place in range(0, len(names), every):
            self.add_below(place + 0.5, names[place])

    def name_axes(self, x: str = "", y: str = "") -> None:
        """Add the names of the axes: `y` above it, `x` below its end."""
        if y:
            self.texts.append(Text(2, 7, y, "start", "title"))
        if x:
            self.texts.append(Text(self.shape.edge, self.shape.height - 7, x, "end", "title"))

    def add_ticks_across(self, words: Callable[[float], str] = write_tick) -> None:
        """Add lines at round values of `y`."""
        for value in self.y.round_values:
            self.add_across(value, words(value))

    def add_ticks_below(self, words: Callable[[float], str] = write_tick) -> None:
        """Add lines at round values of `x`."""
        for value in self.x.round_values:
            kind = "across zero" if value == 0 else "across"
            at = self.x.at(value)
            self.grid.append(PlotLine(at, at, self.shape.top, self.shape.floor, kind))
            self.add_below(value, words(value))

    def add_across(self, value: float, words: str) -> None:
        """Add a horizontal line in the background, with its text at the left."""
        self.grid.append(self._across(value, "across zero" if value == 0 and self.y.low < 0 else "across"))
        self.texts.append(Text(self.shape.left - 6, self.y.at(value), words, "end"))

    def add_level(self, value: float) -> None:
        self.lines.append(self._across(value, "level"))

    def _across(self, value: float, kind: str) -> PlotLine:
        y = self.y.at(value)
        return PlotLine(self.shape.left, self.shape.edge, y, y, kind)

    def add_below(self, value: float, words: str) -> None:
        self.texts.append(Text(self.x.at(value), self.shape.floor + 14, words))

    def add_upright(self, value: float, words: str, row: int, kind: str) -> None:
        """Add a vertical line at a value of `x`, its text beside its top; texts in different rows never overlap."""
        x, y = self.x.at(value), 8 + 13 * row
        self.lines.append(PlotLine(x, x, y - 5, self.shape.floor, kind))
        # Right of there, a text to the right would leave the drawing.
        is_right = x > self.shape.width * 0.62
        self.texts.append(Text(x - 5 if is_right else x + 5, y, words, "end" if is_right else "start", "note"))

    def add_bar(self, start: float, end: float, low: float, high: float, kind: str, words: str, link: str = "") -> None:
        x, top = self.x.at(start), self.y.at(high)
        # A thinner bar would be invisible on most screens.
        width = max(round(self.x.at(end) - x, 1), THINNEST)
        self.bars.append(Bar(x, top, width, round(self.y.at(low) - top, 1), kind, words, link))

    def add_dot(self, x: float, y: float, kind: str, words: str, link: str = "", picture: str = "") -> None:
        """Add a dot at a place in pixels; `picture` is the address of the image that it represents."""
        self.dots.append(Dot(x, y, kind, words, link, picture=picture))

    def add_path(self, points: Iterable[tuple[float, float]], kind: str) -> None:
        """Add a line through these values."""
        self.paths.append((self._place(points), kind))

    def add_mark(self, place: float, low: float, high: float, kind: str, words: str, link: str) -> None:
        self.dots.append(Dot(self.x.at(place), self.y.at(high), kind, words, link, self.y.at(low)))

    def add_dots(
        self, column: int, dots: Iterable[tuple[float, str, str, str] | tuple[float, str, str, str, str]]
    ) -> None:
        """Add (value, kind, words, link, picture) dots of one column; dots of nearly the same height are side by
        side. If there is no room for all, the last one says how many more there are."""
        # The picture may be left out.
        given = [(*each, "")[:5] for each in dots]
        middle = self.x.at(column + 0.5)
        # Four pixels stay free on each side of a column; one dot always fits.
        room = max(self.x.at(1) - self.x.at(0) - 8, SIZE)
        for stack in stack_dots([self.y.at(each[0]) for each in given], room):
            for place, aside in stack.places:
                _, kind, words, link, picture = given[place]
                last = stack.more and place == stack.places[-1][0]
                words += f"; and {stack.more} more like it" if last else ""
                self.add_dot(round(middle + aside, 1), stack.along, kind, words, link, picture)
            if stack.more and room > 60:
                self.texts.append(Text(middle + room / 2, stack.along - SIZE, f"{TIMES} {stack.count}", "end", "pile"))

    def draw_steps(self, values: Sequence[float | None]) -> None:
        """Draw a line with a constant height in each column, from the first column that has a value."""
        known = [(place, value) for place, value in enumerate(values) if value is not None]
        self._draw_through((at, value) for place, value in known for at in (place, place + 1))

    def draw_sums(self, values: Sequence[float]) -> None:
        """Draw a line that starts at zero and reaches each value at the end of its column."""
        self._draw_through(enumerate([0.0, *values]))

    def _draw_through(self, points: Iterable[tuple[float, float]]) -> None:
        self.points = self._place(points)

    def _place(self, points: Iterable[tuple[float, float]]) -> str:
        return " ".join(f"{self.x.at(place)},{self.y.at(value)}" for place, value in points)
