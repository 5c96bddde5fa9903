"""Draw plots: one geometry, a function for each kind of plot, and `display/plot.html`, which writes them as SVG
with their numbers as a table."""

from __future__ import annotations

from experiments.display.plots.axes import Axis, Interval, Scale, fit_axis, round_step
from experiments.display.plots.bars import BarSeries, LineSeries, draw_bars, draw_lines
from experiments.display.plots.curves import PlotCurve, draw_curves
from experiments.display.plots.distributions import CountedGroup, draw_distributions
from experiments.display.plots.dots import PlotValue, ValueGroup, activation_plot, draw_columns
from experiments.display.plots.geometry import HALF, SMALL, Dot, Plot, PlotLine, PlotShape, PlotTable, Text
from experiments.display.plots.groups import Level, draw_groups
from experiments.display.plots.matrix import MatrixCell, draw_matrix
from experiments.display.plots.rows import IntervalRow, WaterfallRow, WaterfallSpan, draw_intervals, draw_waterfall

__all__ = [
    "HALF",
    "SMALL",
    "Axis",
    "BarSeries",
    "CountedGroup",
    "Dot",
    "Interval",
    "IntervalRow",
    "Level",
    "LineSeries",
    "MatrixCell",
    "Plot",
    "PlotCurve",
    "PlotLine",
    "PlotShape",
    "PlotTable",
    "PlotValue",
    "Scale",
    "Text",
    "ValueGroup",
    "WaterfallRow",
    "WaterfallSpan",
    "activation_plot",
    "draw_bars",
    "draw_columns",
    "draw_curves",
    "draw_distributions",
    "draw_groups",
    "draw_intervals",
    "draw_lines",
    "draw_matrix",
    "draw_waterfall",
    "fit_axis",
    "round_step",
]
