"""Draw values as dots, in columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from statistics import fmean

from experiments.display.plots.axes import Axis, Scale, fit_axis
from experiments.display.plots.geometry import SMALL, Plot, PlotShape, PlotTable, Text
from workers.record.figures import figure

COLUMNS = PlotShape(720, 280, 52, 18, 22, 42, 90)


@dataclass(frozen=True)
class PlotValue:
    """A dot: its value, name, link, and the address of its picture."""

    value: float
    name: str
    link: str = ""
    picture: str = ""

    @property
    def words(self) -> str:
        return f"{self.name}: {figure(self.value)}" if self.name else figure(self.value)


@dataclass(frozen=True)
class ValueGroup:
    """Named values; `kind` is the colour of their dots: with, without, exemplar, or part-0 to part-5."""

    name: str
    kind: str
    values: Sequence[PlotValue]

    @property
    def numbers(self) -> list[float]:
        return [each.value for each in self.values if math.isfinite(each.value)]

    @property
    def mean(self) -> float | None:
        return fmean(self.numbers) if self.numbers else None

    @property
    def summary(self) -> str:
        return f"mean {figure(self.mean)} · n = {len(self.numbers):,}"


def summarize_groups(groups: Sequence[ValueGroup], first: str) -> PlotTable:
    """Return the table of a plot of groups, with a summary of each group."""
    # A row for each dot would be too long.
    rows = [
        (each.name, len(each.numbers), each.mean, min(each.numbers, default=None), max(each.numbers, default=None))
        for each in groups
    ]
    return PlotTable((first, "n", "Mean", "Lowest", "Highest"), rows)


def draw_columns(groups: Sequence[ValueGroup], label: str, x_title: str, y_title: str) -> Plot:
    """Draw a column of dots for each group, with its mean."""
    y = fit_axis([value for each in groups for value in each.numbers], COLUMNS.floor, COLUMNS.top)
    plot = Plot(COLUMNS, Axis(0, max(len(groups), 1), COLUMNS.left, COLUMNS.edge), y, label, "columns")
    plot.name_axes(x_title, y_title)
    plot.add_ticks_across()
    plot.name_columns([each.name for each in groups])
    for column, each in enumerate(groups):
        if each.mean is not None:
            plot.add_path([(column + 0.2, each.mean), (column + 0.8, each.mean)], "mean")
        plot.add_dots(column, ((one.value, each.kind, one.words, one.link, one.picture) for one in each.values))
    plot.table = summarize_groups(groups, x_title or "Group")
    return plot


def activation_plot(values: Sequence[tuple[int, float, str]], scale: Scale) -> Plot:
    """Draw the small plot beside a transcript, of (round, activation, title) triples sorted by round."""
    groups = [(number, list(group)) for number, group in groupby(values, key=itemgetter(0))]
    # Of many columns, the word would not fit.
    names = [f"round {number}" if len(groups) < 5 else str(number) for number, _ in groups]
    label = f"Activations of {len(values)} image{'s' * (len(values) != 1)} by round"
    plot = Plot.of_columns(names, [scale.low, scale.high], label, SMALL)
    if scale.exemplar_mean is not None:
        words = f"exemplar threshold {figure(scale.exemplar_mean)}"
        plot.label += f"; {words}"
        plot.add_level(scale.exemplar_mean)
        plot.texts.append(Text(SMALL.edge, 5, f"- - {words}", "end", "note"))
    for column, (number, group) in enumerate(groups):
        link = f"#round-{number}"
        plot.add_dots(
            column, ((value, scale.strength(value), f"{title}: {figure(value)}", link) for _, value, title in group)
        )
    activations = [[value for _, value, _ in group if math.isfinite(value)] for _, group in groups]
    rows = [
        (str(number), len(some), max(some, default=None)) for (number, _), some in zip(groups, activations, strict=True)
    ]
    plot.table = PlotTable(("Round", "Images", "Strongest"), rows)
    return plot
