"""Draw rows with names at the left: values with intervals, and time spans."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from experiments.display.plots.axes import Axis, fit_axis
from experiments.display.plots.geometry import Plot, PlotLine, PlotShape, PlotTable, Text
from workers.record.figures import figure

WIDTH, WATERFALL = 580, 920
"""Widths of the drawings; intervals are narrow enough for a phone."""
ROW, TALL, LINE, NAME_CHARS = 24, 38, 15, 25
"""Height of a row, and of one whose name takes two lines; height and characters of a line."""
CHAR, GAP = 8, 10
"""Room for a character of a name, as large as on a phone; gap between name and drawing."""
NARROWEST = 1.5
"""Minimum width of a time span."""


@dataclass(frozen=True)
class IntervalRow:
    """A value, with its interval and sample size if known."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    kind: str = "part-0"
    link: str = ""
    picture: str = ""

    @property
    def words(self) -> str:
        between = "" if self.low is None or self.high is None else f" ({figure(self.low)} to {figure(self.high)})"
        return f"{self.name}: {figure(self.value)}{between}" + (f", n = {self.n:,}" if self.n is not None else "")


def draw_intervals(
    rows: Sequence[IntervalRow],
    label: str,
    x_title: str,
    *,
    level: float | None = None,
    sorts: bool = True,
    interval: str = "95 % interval",
    counts: bool = False,
) -> Plot | None:
    """Draw a dot and a whisker for each row, largest first; None without rows. `level`: a value with which all are
    compared; `counts`: adds n beside each name."""
    # 1. Rows, their names, and the size that these need.
    known = [each for each in rows if math.isfinite(each.value)]
    if not known:
        return None
    known = sorted(known, key=lambda each: -each.value) if sorts else known
    names = [_wrap(f"{row.name}, n = {row.n:,}" if counts and row.n is not None else row.name) for row in known]
    row_height = TALL if any(len(lines) > 1 for lines in names) else ROW
    bottom = 40 if x_title else 26
    shape = PlotShape(WIDTH, 10 + row_height * len(known) + bottom, _measure_names(names), 18, 10, bottom)
    values = [each for row in known for each in (row.value, row.low, row.high)]
    x = fit_axis([*values, level], shape.left, shape.edge)
    # 2. Axis, level, and a dot with a whisker for each row.
    plot = Plot(shape, x, Axis(0, len(known), shape.top, shape.floor), label, "intervals")
    plot.name_axes(x_title)
    plot.add_ticks_below()
    if level is not None:
        plot.lines.append(PlotLine(x.at(level), x.at(level), shape.top, shape.floor, "level"))
    for place, row in enumerate(known):
        y = plot.y.at(place + 0.5)
        _name_row(plot, names[place], y)
        if row.low is not None and row.high is not None:
            plot.lines.append(PlotLine(x.at(row.low), x.at(row.high), y, y, f"whisker {row.kind}"))
        plot.add_dot(x.at(row.value), y, row.kind, row.words, row.link, row.picture)
    # 3. The same as a table, without a column of n if none is known.
    cells = [(row.name, row.value, _format_interval(row.low, row.high), row.n) for row in known]
    columns = ("Name", x_title or "Value", interval, "n")
    if all(row.n is None for row in known):
        columns, cells = columns[:-1], [each[:-1] for each in cells]  # type: ignore[assignment, misc]
    plot.table = PlotTable(columns, cells, [row.link for row in known])
    return plot


def _wrap(name: str) -> list[str]:
    return textwrap.wrap(name, NAME_CHARS, max_lines=2, placeholder="…") or [""]


def _measure_names(names: Sequence[Sequence[str]]) -> int:
    """Return the width of the longest line of names."""
    return 2 * GAP + CHAR * max(len(line) for lines in names for line in lines)


def _name_row(plot: Plot, lines: Sequence[str], y: float) -> None:
    first = y - LINE * (len(lines) - 1) / 2
    for place, line in enumerate(lines):
        plot.texts.append(Text(plot.shape.left - GAP, first + LINE * place, line, "end", "name"))


def _format_interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{figure(low)} to {figure(high)}"


@dataclass(frozen=True)
class WaterfallSpan:
    """A time span, in seconds from the start."""

    start: float
    end: float
    kind: str
    words: str
    link: str = ""


@dataclass(frozen=True)
class WaterfallRow:
    name: str
    spans: Sequence[WaterfallSpan]


def draw_waterfall(
    rows: Sequence[WaterfallRow],
    label: str,
    x_title: str,
    legend: Sequence[tuple[str, str]],
    tell: Callable[[float], str],
    tick: Callable[[float], str],
) -> Plot | None:
    """Draw time spans in rows below each other on one time axis; `tell` formats seconds as text, `tick` at the axis."""
    ends = [span.end for row in rows for span in row.spans if math.isfinite(span.end)]
    if not ends:
        return None
    row_height = ROW - 2
    names = [[row.name[:NAME_CHARS]] for row in rows]
    shape = PlotShape(WATERFALL, 10 + row_height * len(rows) + 40, _measure_names(names), 18, 10, 40)
    # A run of no time at all still needs an axis.
    x = Axis(0, max(max(ends), 0.001), shape.left, shape.edge)
    plot = Plot(shape, x, Axis(0, len(rows), shape.top, shape.floor), label, "waterfall", legend=list(legend))
    plot.name_axes(x_title)
    # Round ticks in the unit that readers see: 60 s is rounder than 50 s on an axis of minutes.
    unit = next((unit for unit in (3600.0, 60.0, 1.0) if x.high >= 2 * unit), 0.001)
    for value in Axis(0, x.high / unit, 0, 1).round_values:
        at = x.at(value * unit)
        plot.grid.append(PlotLine(at, at, shape.top, shape.floor, "across"))
        plot.add_below(value * unit, tick(value * unit))
    cells: list[tuple[str, str, str]] = []
    for place, row in enumerate(rows):
        _name_row(plot, names[place], plot.y.at(place + 0.5))
        for span in row.spans:
            # A span of an instant would be invisible, and could not be pointed at.
            end = max(span.end, span.start + NARROWEST * x.high / (shape.edge - shape.left))
            plot.add_bar(span.start, end, place + 0.82, place + 0.18, span.kind, span.words, span.link)
            cells.append((row.name, span.words, tell(span.end - span.start)))
    plot.table = PlotTable(("Row", "What", "Took"), cells)
    return plot
