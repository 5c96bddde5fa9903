"""Draw columns over names, such as weeks or rounds: stacked bars, and lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from experiments.display.plots.axes import Axis, fit_axis, write_tick
from experiments.display.plots.geometry import Plot, PlotShape, PlotTable

BARS = PlotShape(560, 220, 52, 12, 22, 42, 52)
Tell = Callable[[float], str]


@dataclass(frozen=True)
class BarSeries:
    """A value for each column, and the link of each bar; `kind` is its colour."""

    name: str
    kind: str
    values: Sequence[float]
    links: Sequence[str] = ()


@dataclass(frozen=True)
class LineSeries:
    """A value for each column; None, for an unknown one, makes a gap in the line."""

    name: str
    kind: str
    values: Sequence[float | None]
    links: Sequence[str] = ()


def draw_bars(
    names: Sequence[str],
    series: Sequence[BarSeries],
    label: str,
    x_title: str,
    y_title: str,
    *,
    tell: Tell = write_tick,
    stacks: bool = True,
    shape: PlotShape = BARS,
) -> Plot:
    """Draw a bar for each name: the series stacked, or side by side."""
    sums = [sum(each.values[place] for each in series) for place in range(len(names))]
    tallest = sums if stacks else [value for each in series for value in each.values]
    plot = _start(names, [0.0, *tallest], label, "bars", shape, x_title, y_title, tell)
    # A bar fills 76 % of its column, 12 % stay free on each side.
    room = 0.76 if stacks else 0.76 / max(len(series), 1)
    for place, name in enumerate(names):
        reached = 0.0
        for number, each in enumerate(series):
            value, left = each.values[place], place + 0.12 + (0 if stacks else number * room)
            words = f"{name}{f', {each.name}' if len(series) > 1 else ''}: {tell(value)}"
            # A bar of height 0 would still be a mark to step through.
            if value:
                link = each.links[place] if each.links else ""
                plot.add_bar(left, left + room, reached, reached + value, each.kind, words, link)
            reached += value if stacks else 0
    _add_series(plot, names, series, x_title, tell)
    return plot


def draw_lines(
    names: Sequence[str],
    series: Sequence[LineSeries],
    label: str,
    x_title: str,
    y_title: str,
    *,
    tell: Tell = write_tick,
    shape: PlotShape = BARS,
    span: tuple[float, float] | None = None,
) -> Plot:
    """Draw a line through the columns for each series, with a dot at each value; `span`: the range that the axis
    must include."""
    values = [value for each in series for value in each.values if value is not None]
    values += span or ()
    plot = _start(names, values, label, "lines", shape, x_title, y_title, tell)
    for each in series:
        stretch: list[tuple[float, float]] = []
        # The added None ends the last stretch.
        for place, value in enumerate([*each.values, None]):
            if value is not None and math.isfinite(value):
                stretch.append((place + 0.5, value))
                words = f"{names[place]}{f', {each.name}' if len(series) > 1 else ''}: {tell(value)}"
                link = each.links[place] if each.links else ""
                plot.add_dot(plot.x.at(place + 0.5), plot.y.at(value), each.kind, words, link)
            elif stretch:
                plot.add_path(stretch, each.kind)
                stretch = []
    _add_series(plot, names, series, x_title, tell)
    return plot


def _start(
    names: Sequence[str],
    values: Sequence[float],
    label: str,
    kind: str,
    shape: PlotShape,
    x_title: str,
    y_title: str,
    tell: Tell,
) -> Plot:
    y = fit_axis(values, shape.floor, shape.top)
    plot = Plot(shape, Axis(0, max(len(names), 1), shape.left, shape.edge), y, label, kind)
    plot.name_axes(x_title, y_title)
    plot.add_ticks_across(tell)
    plot.name_columns(names)
    return plot


def _add_series(
    plot: Plot, names: Sequence[str], series: Sequence[BarSeries | LineSeries], x_title: str, tell: Tell
) -> None:
    if len(series) > 1:
        plot.legend = [(each.kind, each.name) for each in series]
    rows = [
        (name, *("" if (value := each.values[place]) is None else tell(value) for each in series))
        for place, name in enumerate(names)
    ]
    plot.table = PlotTable((x_title or "Name", *(each.name for each in series)), rows)
