"""A unit's activations over a dataset: how many images reach which activation, as a drawing."""

from __future__ import annotations

import math
from typing import Any

from experiments.display.plots import Axis, Plot, Shape
from workers.record.figures import figure

SHAPE = Shape(560, 180, 40, 12, 34, 24)
GAP = 0.07
"""Share of a bar's room that stays free."""


def distribution(histogram: dict[str, Any], exemplar_mean: float | None, quantile: float | None) -> Plot | None:
    """The histogram of a profile; None if nobody knows one. Heights are logarithmic: most images leave most units
    near 0."""
    counts, start, width = histogram.get("counts") or [], histogram.get("start", 0.0), histogram.get("width", 0.0)
    known = [value for value in (exemplar_mean, quantile) if value is not None]
    low, high = min([start, *known]), max([start + width * len(counts), *known])
    if not counts or not math.isfinite(high - low) or high <= low:
        return None
    x, y = Axis(low, high, SHAPE.left, SHAPE.edge), Axis(0, math.log10(1 + max(counts)), SHAPE.floor, SHAPE.top)
    plot = Plot(SHAPE, x, y, f"Activations of {sum(counts)} image{'s' * (sum(counts) != 1)}")
    powers = [10**power for power in range(int(math.log10(max(counts))) + 1)]
    for count in powers[:: math.ceil(len(powers) / 4)]:
        plot.add_across(math.log10(1 + count), f"{count:,}")
    for value in x.round_values:
        plot.add_below(value, f"{value:g}")
    for place, count in enumerate(counts):
        if count:
            left, right = start + place * width, start + (place + 1) * width
            kind = "strong" if exemplar_mean is not None and right > exemplar_mean else "weak"
            words = f"{count:,} image{'s' * (count != 1)} from {figure(left)} to {figure(right)}"
            plot.add_bar(left, right - GAP * width, 0, math.log10(1 + count), kind, words)
    named = (("exemplar mean", exemplar_mean, "mean"), ("mask threshold", quantile, "quantile"))
    for row, (words, at, kind) in enumerate(named):
        if at is not None:
            plot.label += f"; {words} {figure(at)}"
            plot.add_upright(at, f"{words} {figure(at)}", row, f"upright {kind}")
    return plot
