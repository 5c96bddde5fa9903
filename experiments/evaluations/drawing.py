"""Plots of an evaluation as geometry for `display/plot.html` (SVG), with their points as an accessible table."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass

from experiments.display.plots import Axis, IntervalRow, Plot, PlotLine, PlotShape, Text, draw_intervals, fit_axis
from workers.record.evaluations import Point, ResultPlot
from workers.record.figures import figure

Link = Callable[[int | None], str]
"""Return the page behind an item by its key; "" if there is none."""
COLOURS = 6
"""Number of distinct colours of series."""
MAX_POINTS = 2_000
"""Maximum number of points drawn; the table has all."""
COLUMN_CHARS = 40
ASIDE = 5
"""Distance between intervals of neighbouring series, in pixels."""


@dataclass(frozen=True)
class PlotRow:
    """A point as text."""

    series: str
    name: str
    point: Point
    value: float
    """The value of the interval: horizontal in interval plots, else vertical."""
    link: str


@dataclass(frozen=True)
class ResultDrawing:
    """A drawn plot: geometry, legend, and its points as text."""

    source: ResultPlot
    plot: Plot
    legend: Sequence[tuple[str, str]]
    rows: Sequence[PlotRow]

    @property
    def point_words(self) -> str:
        """Return what the points are, for the table."""
        return "" if self.source.kind == "intervals" else self.source.x or "point"

    @property
    def value_words(self) -> str:
        """Return what the values are, for the table."""
        return (self.source.x if self.source.kind == "intervals" else self.source.y) or "value"


def draw_result(source: ResultPlot, link: Link) -> ResultDrawing | None:
    """Draw a plot; None if it has no finite points or an unknown kind."""
    shape = _SHAPES.get(source.kind)
    across = source.kind == "intervals"
    rows = [
        PlotRow(
            series.name,
            point.label or (series.name if across else f"{point.x:g}"),
            point,
            point.x if across else point.y,
            link(point.item),
        )
        for series in source.series
        for point in series.points
        # JSON of older results may hold NaN
        if math.isfinite(point.x) and math.isfinite(point.y)
    ]
    if shape is None or not rows:
        return None
    # Series keep their order, and with it their colours.
    names = list(dict.fromkeys(row.series for row in rows))
    legend = [(f"part-{place % COLOURS}", name) for place, name in enumerate(names)]
    # Thousands of SVG elements slow browsers down; the table has every point
    return ResultDrawing(source, shape(source, rows[:MAX_POINTS], dict(zip(names, legend, strict=True))), legend, rows)


Kinds = dict[str, tuple[str, str]]
"""Name of a series -> its colour and its name."""


def _values(rows: Iterable[PlotRow]) -> list[float]:
    return [each for row in rows for each in (row.value, row.point.low, row.point.high) if each is not None]


def _describe(row: PlotRow) -> str:
    point = row.point
    named = f"{row.series}, {row.name}" if row.series else row.name
    between = "" if point.low is None or point.high is None else f" ({figure(point.low)} to {figure(point.high)})"
    return f"{named}: {figure(row.value)}{between}"


def _draw_intervals(source: ResultPlot, rows: Sequence[PlotRow], kinds: Kinds) -> Plot:
    """Draw one row per point, with its value horizontally."""
    known = [
        IntervalRow(row.name, row.value, row.point.low, row.point.high, kind=kinds[row.series][0], link=row.link)
        for row in rows
    ]
    plot = draw_intervals(known, f"{source.title}, with 95 % intervals", "", sorts=False)
    # For the type checker: `draw_intervals` returns None only without rows.
    assert plot is not None, "there are rows"
    plot.table = None  # The result has its own table, with series
    return plot


def _draw_line(source: ResultPlot, rows: Sequence[PlotRow], kinds: Kinds, joined: Container[str] | None = None) -> Plot:
    """Draw y against x, with a line for each series, or only for those in `joined`."""
    shape = PlotShape(720, 300, 52, 18, 14, 46)
    x = fit_axis([row.point.x for row in rows], shape.left, shape.edge, lines=5)
    y = fit_axis(_values(rows), shape.floor, shape.top, lines=5)
    plot = Plot(shape, x, y, f"{source.title}: {source.y} against {source.x}")
    _add_scales(plot, source)
    for place, (name, (kind, _)) in enumerate(kinds.items()):
        some = sorted((row for row in rows if row.series == name), key=lambda row: row.point.x)
        if joined is None or name in joined:
            plot.add_path(((row.point.x, row.point.y) for row in some), kind)
        for row in some:
            at = x.at(row.point.x)
            if row.point.low is not None and row.point.high is not None:
                # Side by side, or intervals of several series would overlap
                beside = at + ASIDE * (place - (len(kinds) - 1) / 2)
                ends = y.at(row.point.low), y.at(row.point.high)
                plot.lines.append(PlotLine(beside, beside, *ends, f"whisker {kind}"))
            plot.add_dot(at, y.at(row.point.y), kind, f"{_describe(row)}", row.link)
    return plot


def _draw_front(source: ResultPlot, rows: Sequence[PlotRow], kinds: Kinds) -> Plot:
    """Draw y against x, with a line through the first series only."""
    return _draw_line(source, rows, kinds, joined=[source.series[0].name])


def _add_scales(plot: Plot, source: ResultPlot) -> None:
    for value in plot.y.round_values:
        plot.add_across(value, f"{value:g}")
    for value in plot.x.round_values:
        plot.add_below(value, f"{value:g}")
    plot.texts.append(Text(plot.shape.edge, plot.shape.height - 9, source.x, "end", "note"))


def _draw_strip(source: ResultPlot, rows: Sequence[PlotRow], kinds: Kinds) -> Plot:
    """Draw a column of points per series."""
    shape = PlotShape(720, 280, 52, 18, 14, 30)
    y = fit_axis(_values(rows), shape.floor, shape.top, lines=5)
    plot = Plot(shape, Axis(0, len(kinds), shape.left, shape.edge), y, f"{source.title}: {source.y}")
    for value in y.round_values:
        plot.add_across(value, f"{value:g}")
    for column, (name, (kind, _)) in enumerate(kinds.items()):
        plot.add_below(column + 0.5, name[:COLUMN_CHARS])
        some = [row for row in rows if row.series == name]
        plot.add_dots(column, ((row.point.y, kind, _describe(row), row.link) for row in some))
    return plot


_SHAPES: dict[str, Callable[[ResultPlot, Sequence[PlotRow], Kinds], Plot]] = {
    "intervals": _draw_intervals,
    "line": _draw_line,
    "front": _draw_front,
    "strip": _draw_strip,
}
