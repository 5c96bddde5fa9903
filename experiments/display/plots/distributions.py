"""Draw distributions of many values, one row of bars for each group on a shared axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments.display.plots.axes import Axis, fit_axis
from experiments.display.plots.geometry import Plot, PlotLine, PlotShape, PlotTable, Text
from workers.record.figures import figure

WIDTH, HEAD, ROW, NAME_CHARS = 640, 18, 34, 48
"""Size of the drawing in pixels: width, heights of a row's text and of its bars; and characters of a name."""


@dataclass(frozen=True)
class CountedGroup:
    """The number of values under a name. `counts` has the count of each bin; bin n starts at `n * width`."""

    name: str
    counts: Mapping[int, int]
    mean: float
    low: float
    high: float
    link: str = ""

    @property
    def n(self) -> int:
        return sum(self.counts.values())

    @property
    def summary(self) -> str:
        return f"mean {figure(self.mean)} · n = {self.n:,}"


def draw_distributions(groups: Sequence[CountedGroup], width: float, label: str, x_title: str) -> Plot | None:
    """Draw a row for each group, its bars relative to its fullest bin; `width` is that of a bin. None without any
    value."""
    shown = [each for each in groups if each.n]
    if not shown:
        return None
    shape = PlotShape(WIDTH, 6 + (HEAD + ROW) * len(shown) + 38, 8, 12, 6, 38)
    # The axis holds 0 to 1 at least, so that plots of r can be compared.
    bins = [place for each in shown for place in each.counts]
    x = fit_axis([min(0.0, min(bins) * width), max(1.0, (max(bins) + 1) * width)], shape.left, shape.edge)
    plot = Plot(shape, x, Axis(0, shape.height, 0, shape.height), label, "distributions")
    plot.name_axes(x_title)
    plot.add_ticks_below()
    for row, each in enumerate(shown):
        _draw_row(plot, each, width, shape.top + (HEAD + ROW) * row)
        plot.label += f"; {each.name}: {each.summary}"
    rows = [(each.name, each.n, each.mean, each.low, each.high) for each in shown]
    plot.table = PlotTable(("Group", "n", "Mean", "Lowest", "Highest"), rows, [each.link for each in shown])
    return plot


def _draw_row(plot: Plot, group: CountedGroup, width: float, top: float) -> None:
    name = group.name if len(group.name) <= NAME_CHARS else f"{group.name[: NAME_CHARS - 1]}…"
    plot.texts.append(Text(plot.shape.left, top + HEAD / 2, name, "start", "name"))
    plot.texts.append(Text(plot.shape.edge, top + HEAD / 2, group.summary, "end", "figures"))
    floor, fullest = top + HEAD + ROW - 2, max(group.counts.values())
    plot.grid.append(PlotLine(plot.shape.left, plot.shape.edge, floor, floor, "across"))
    for place, count in sorted(group.counts.items()):
        low, high = place * width, (place + 1) * width
        words = f"{group.name}: {count:,} from {figure(low)} to {figure(high)}"
        # At least 1.5 pixels, so that a single value is visible beside a full bin.
        height = max((ROW - 6) * count / fullest, 1.5)
        plot.add_bar(low + width * 0.06, high - width * 0.06, floor, floor - height, "part-0", words, group.link)
    at = plot.x.at(group.mean)
    plot.lines.append(PlotLine(at, at, floor - ROW + 4, floor, "mean"))
