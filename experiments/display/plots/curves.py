"""Draw values against a number: a line for each series, with a dot at each value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.display.plots.axes import fit_axis, write_tick
from experiments.display.plots.dots import PlotValue
from experiments.display.plots.geometry import Plot, PlotShape, PlotTable

_SHAPE = PlotShape(400, 190, 46, 12, 22, 40)
_COLOURS = 6
MAX_CURVES = _COLOURS


@dataclass(frozen=True)
class PlotCurve:
    """Named pairs of a number and the value there."""

    name: str
    points: Sequence[tuple[float, PlotValue]]


def draw_curves(curves: Sequence[PlotCurve], label: str, x_title: str, y_title: str) -> Plot:
    """Draw the first `MAX_CURVES`, each in its own colour; the table holds all."""
    drawn = curves[:MAX_CURVES]
    points = [point for each in drawn for point in each.points]
    x = fit_axis([at for at, _ in points], _SHAPE.left, _SHAPE.edge)
    y = fit_axis([value.value for _, value in points], _SHAPE.floor, _SHAPE.top, lines=5)
    plot = Plot(_SHAPE, x, y, label, "lines")
    plot.name_axes(x_title, y_title)
    plot.add_ticks_across()
    plot.add_ticks_below()
    for place, each in enumerate(drawn):
        ordered = sorted(each.points, key=lambda point: point[0])
        plot.add_path([(at, value.value) for at, value in ordered], f"part-{place}")
        for at, value in ordered:
            plot.add_dot(x.at(at), y.at(value.value), f"part-{place}", value.words, value.link, value.picture)
    if len(curves) > 1:
        plot.legend = [(f"part-{place}", each.name) for place, each in enumerate(drawn)]
    if len(curves) > len(drawn):
        plot.note = f"{len(curves) - len(drawn)} more in the table alone."
    rows = [(each.name, write_tick(at), value.value) for each in curves for at, value in each.points]
    plot.table = PlotTable(("Series", x_title, y_title), rows)
    return plot
