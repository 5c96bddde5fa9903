"""Plots of an evaluation, and the picture of a check, as geometry: what `display/plot.html` writes as SVG, each with
its points as a table for those who do not see it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from experiments.display.plots import Axis, IntervalRow, Plot, PlotLine, Shape, Text, draw_intervals, round_step
from workers.record.evaluations import Point, ResultPlot
from workers.record.figures import figure
from workers.record.label_checks import NaturalResult

Link = Callable[[int | None], str]
"""Key of an item -> the address of what is behind it; "" for none."""
COLOURS = 6
"""Series that have a colour of their own."""
MOST = 2_000
"""Points that are drawn; the table has them all."""
COLUMN_CHARS = 40
ASIDE = 5
"""How far intervals of neighbouring series stand apart."""
BINS = 24


@dataclass(frozen=True)
class PlotRow:
    """A point in words."""

    series: str
    name: str
    point: Point
    value: float
    """What its interval is of: across in rows of intervals, upwards elsewhere."""
    link: str


@dataclass(frozen=True)
class ResultDrawing:
    """A plot of a result: the geometry, the series with their colours, and the points in words."""

    source: ResultPlot
    plot: Plot
    legend: Sequence[tuple[str, str]]
    rows: Sequence[PlotRow]

    @property
    def point_words(self) -> str:
        """What the points are, over the table."""
        return "" if self.source.kind == "intervals" else self.source.x or "point"

    @property
    def value_words(self) -> str:
        """What their values are."""
        return (self.source.x if self.source.kind == "intervals" else self.source.y) or "value"


def draw_result(source: ResultPlot, link: Link) -> ResultDrawing | None:
    """None where it holds nothing that could be drawn, or is of a kind that is not known."""
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
        if math.isfinite(point.x) and math.isfinite(point.y)
    ]
    if shape is None or not rows:
        return None
    names = list(dict.fromkeys(row.series for row in rows))
    legend = [(f"part-{place % COLOURS}", name) for place, name in enumerate(names)]
    return ResultDrawing(source, shape(source, rows[:MOST], dict(zip(names, legend, strict=True))), legend, rows)


Kinds = dict[str, tuple[str, str]]
"""Name of a series -> its colour and its name."""


def _values(rows: Iterable[PlotRow]) -> list[float]:
    return [each for row in rows for each in (row.value, row.point.low, row.point.high) if each is not None]


def _axis(values: Iterable[float], start: float, end: float) -> Axis:
    """From a round value to a round value, with zero where it is near."""
    known = [value for value in values if math.isfinite(value) and abs(value) < 1e12]
    low, high = min(known, default=0.0), max(known, default=1.0)
    low, high = (0.0 if 0 < low < 0.6 * high else low), (0.0 if 0.6 * low < high < 0 else high)
    step = round_step((high - low) / 5 or 0.2)
    first, last = math.floor(low / step) * step, math.ceil(high / step) * step
    return Axis(first, last if last > first else first + step, start, end)


def _describe(row: PlotRow) -> str:
    point = row.point
    named = f"{row.series}, {row.name}" if row.series else row.name
    between = "" if point.low is None or point.high is None else f" ({figure(point.low)} to {figure(point.high)})"
    return f"{named}: {figure(row.value)}{between}"


def _draw_intervals(source: ResultPlot, rows: Sequence[PlotRow], kinds: Kinds) -> Plot:
    """A row for each point, its value across."""
    known = [
        IntervalRow(row.name, row.value, row.point.low, row.point.high, kind=kinds[row.series][0], link=row.link)
        for row in rows
    ]
    plot = draw_intervals(known, f"{source.title}, with 95 % intervals", "", sorts=False)
    assert plot is not None, "there are rows"
    plot.table = None  # the result has its own, with the series
    return plot


def _draw_line(source: ResultPlot, rows: Sequence[PlotRow], kinds: Kinds) -> Plot:
    """y against x, a line for each series."""
    shape = Shape(720, 300, 52, 18, 14, 46)
    x = _axis([row.point.x for row in rows], shape.left, shape.edge)
    y = _axis(_values(rows), shape.floor, shape.top)
    plot = Plot(shape, x, y, f"{source.title}: {source.y} against {source.x}")
    _add_scales(plot, source)
    for place, (name, (kind, _)) in enumerate(kinds.items()):
        some = sorted((row for row in rows if row.series == name), key=lambda row: row.point.x)
        plot.add_path(((row.point.x, row.point.y) for row in some), kind)
        for row in some:
            at = x.at(row.point.x)
            if row.point.low is not None and row.point.high is not None:
                beside = at + ASIDE * (place - (len(kinds) - 1) / 2)
                ends = y.at(row.point.low), y.at(row.point.high)
                plot.lines.append(PlotLine(beside, beside, *ends, f"whisker {kind}"))
            plot.add_dot(at, y.at(row.point.y), kind, f"{_describe(row)}", row.link)
    return plot


def _add_scales(plot: Plot, source: ResultPlot) -> None:
    for value in plot.y.round_values:
        plot.add_across(value, f"{value:g}")
    for value in plot.x.round_values:
        plot.add_below(value, f"{value:g}")
    plot.texts.append(Text(plot.shape.edge, plot.shape.height - 9, source.x, "end", "note"))


def _draw_strip(source: ResultPlot, rows: Sequence[PlotRow], kinds: Kinds) -> Plot:
    """A column of points for each series."""
    shape = Shape(720, 280, 52, 18, 14, 30)
    y = _axis(_values(rows), shape.floor, shape.top)
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
    "strip": _draw_strip,
}


# --- a check ---


@dataclass(frozen=True)
class CheckHistogram:
    """Activations of the images that a label describes, upwards, and of the others, downwards, in shares of each; and
    the same in words: from, to, how many of either."""

    plot: Plot
    rows: Sequence[tuple[float, float, int, int]]
    described: int
    others: int
    unseen: int
    """Others that are not drawn: of many images those that the label does not describe are not all kept."""
    described_mean: float | None
    others_mean: float | None


def draw_natural(found: NaturalResult) -> CheckHistogram | None:
    """None where nothing was measured, or all of it is the same."""
    pairs = [
        (activation, expected >= 0.5)
        for activation, expected in zip(found.activations, found.expected, strict=False)
        if expected is not None and math.isfinite(activation) and abs(activation) < 1e12
    ]
    low, high = min((each for each, _ in pairs), default=0.0), max((each for each, _ in pairs), default=0.0)
    if high <= low:
        return None
    width = (high - low) / BINS
    counts = {True: [0] * BINS, False: [0] * BINS}
    for activation, described in pairs:
        counts[described][min(int((activation - low) / width), BINS - 1)] += 1
    values = {side: [each for each, described in pairs if described is side] for side in (True, False)}
    rows = [(low + n * width, low + (n + 1) * width, counts[True][n], counts[False][n]) for n in range(BINS)]
    means = (_mean(values[True]), _mean(values[False]))
    plot = _draw_histogram(rows, len(values[True]), len(values[False]), low, high)
    if found.threshold is not None and low <= found.threshold <= high:
        plot.add_upright(found.threshold, f"mask threshold {figure(found.threshold)}", 0, "upright quantile")
    return CheckHistogram(plot, rows, len(values[True]), len(values[False]), max(0, found.images - len(pairs)), *means)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _draw_histogram(
    rows: Sequence[tuple[float, float, int, int]], described: int, others: int, low: float, high: float
) -> Plot:
    shape = Shape(720, 240, 52, 18, 26, 26)
    shares = [(up / max(described, 1), down / max(others, 1)) for *_, up, down in rows]
    most = max(max(pair) for pair in shares) or 1.0
    x, y = Axis(low, high, shape.left, shape.edge), Axis(-most, most, shape.floor, shape.top)
    label = f"Activations of {described} images that the label describes, above, and of {others} others, below"
    plot = Plot(shape, x, y, label)
    plot.add_across(0.0, "0 %")
    for share in (-most, most):
        plot.add_across(share, f"{abs(share):.0%}".replace("%", " %"))
    for value in x.round_values:
        plot.add_below(value, f"{value:g}")
    for (left, right, up, down), (above, below) in zip(rows, shares, strict=True):
        span, room = f"from {figure(left)} to {figure(right)}", right - 0.08 * (right - left)
        if up:
            plot.add_bar(left, room, 0, above, "strong", f"{up} described, {span}")
        if down:
            plot.add_bar(left, room, -below, 0, "weak", f"{down} others, {span}")
    return plot


def draw_sweep(points: Sequence[tuple[float, float]], threshold: float) -> Plot | None:
    """Predictiveness by threshold, as a share of the exemplar threshold; the one in use as a line."""
    known = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y) and abs(x) < 1e6]
    if len(known) < 2:
        return None
    shape = Shape(470, 200, 46, 14, 22, 44)
    plot = Plot(
        shape,
        _axis([x for x, _ in known], shape.left, shape.edge),
        Axis(0, 1, shape.floor, shape.top),
        "Predictiveness by threshold",
    )
    for value in (0, 0.5, 1):
        plot.add_across(value, f"{value:g}")
    for value in plot.x.round_values:
        plot.add_below(value, f"{value:g}")
    plot.texts.append(Text(shape.edge, shape.height - 9, "multiple of the exemplar threshold", "end", "note"))
    plot.add_path(sorted(known), "part-0")
    if plot.x.low <= threshold <= plot.x.high:
        plot.add_upright(threshold, f"in use: {threshold:g}", 0, "upright quantile")
    return plot
