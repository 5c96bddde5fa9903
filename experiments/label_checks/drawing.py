"""Plots of a label check: activations of images with and without what the label says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.display.plots import Axis, Plot, PlotShape, Text, fit_axis
from workers.record.figures import figure
from workers.record.label_checks import NaturalResult

BINS = 24


@dataclass(frozen=True)
class CheckHistogram:
    """Activations of images that the label describes, upwards, and of the others, downwards, as shares of each; and as
    rows (from, to, described, others)."""

    plot: Plot
    rows: Sequence[tuple[float, float, int, int]]
    described: int
    others: int
    unseen: int
    """Number of others that are not drawn: large checks do not keep all of them."""
    described_mean: float | None
    others_mean: float | None


def draw_natural(found: NaturalResult) -> CheckHistogram | None:
    """Draw the histogram; None if nothing was measured or all values are equal."""
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
        # The maximum itself belongs to the last bin
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
    shape = PlotShape(720, 240, 52, 18, 26, 26)
    # Shares, because there are far more other images than described ones
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
    """Draw predictiveness by threshold, as a multiple of the exemplar threshold, with a line at the one in use."""
    known = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y) and abs(x) < 1e6]
    if len(known) < 2:
        return None
    shape = PlotShape(470, 200, 46, 14, 22, 44)
    plot = Plot(
        shape,
        fit_axis([x for x, _ in known], shape.left, shape.edge, lines=5),
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
