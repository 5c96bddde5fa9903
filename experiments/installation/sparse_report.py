"""The report of a sparse auto-encoder for its page: figures with intervals, and two histograms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from experiments.display.plots.geometry import HALF, Plot, PlotTable
from experiments.models import SparseAutoencoderRow
from workers.record.estimates import Estimate
from workers.record.sparse_report import BinCounts, OutputEffect, SparseReport, read_report

_MEASURES = {
    "kl": "KL divergence of the probabilities of the classes from those of the whole model, in nats",
    "binary_kl": "KL divergence of each class from what the whole model says, summed over classes, in nats",
    "change": "squared change of the output, over its variance among images",
}
_GAP = 0.06
"""Share of a bar's width that stays empty."""


@dataclass(frozen=True)
class Effect:
    """A row of the table: what replaces the layer, and how that changes the model's output."""

    name: str
    change: str
    same: str


@dataclass(frozen=True)
class DrawnReport:
    """The report as the page shows it."""

    report: SparseReport
    density: Plot
    similarity: Plot
    effects: Sequence[Effect]
    measure: str
    """What `Effect.change` measures; "" if nothing was measured."""
    recovered: str


def draw_report(row: SparseAutoencoderRow) -> DrawnReport | None:
    """Return the drawn report. None if nothing was measured, or if the stored report is invalid and must be measured
    again."""
    stored: Any = row.report
    try:
        return _draw(read_report(stored))
    except (ValueError, OverflowError):
        return None


def _draw(report: SparseReport) -> DrawnReport:
    """Draw the report. Raises ValueError or OverflowError for invalid histograms."""
    output = report.output
    return DrawnReport(
        report,
        _draw_density(report),
        _draw_similarity(report.similarity.histogram),
        _list_effects(output),
        _MEASURES.get(output.measure, ""),
        _write_share(output.recovered),
    )


def _draw_density(report: SparseReport) -> Plot:
    """Plot latents by the share of positions at which they are active, from never to always."""
    edges = report.density.edges
    names = [f"{float(f'{100 * 10**edge:.2g}'):g} %" for edge in edges]
    words = [f"from {names[at]} to {names[at + 1]}" for at in range(len(edges) - 1)]
    counts = [report.dead, *report.density.counts]
    label = f"{report.latents:,} latents by the share of positions at which they are active"
    plot = _draw_columns(["never", *names[:-1]], counts, ["never active", *words], label)
    plot.name_axes(y="latents")
    return plot


def _draw_similarity(histogram: BinCounts) -> Plot:
    """Plot latents by their largest cosine to the decoder row of another latent."""
    edges = histogram.edges
    if first := next((at for at, count in enumerate(histogram.counts) if count), 0):  # few point away from all others
        edges, histogram = edges[first:], BinCounts(edges[first:], histogram.counts[first:])
    words = [f"from {low:.1f} to {high:.1f}" for low, high in pairwise(edges)]
    label = f"{sum(histogram.counts):,} latents by the largest cosine to another one's decoder"
    plot = _draw_columns([f"{edge:.1f}" for edge in edges[:-1]], histogram.counts, words, label)
    plot.name_axes(y="latents")
    return plot


def _draw_columns(names: Sequence[str], counts: Sequence[int], words: Sequence[str], label: str) -> Plot:
    plot = Plot.of_columns(names, counts, label, HALF)
    for place, (count, where) in enumerate(zip(counts, words, strict=True)):
        if count:
            plot.add_bar(place + _GAP, place + 1 - _GAP, 0, count, "weak", f"{count:,} latents {where}")
    plot.table = PlotTable(("Active or alike", "Latents"), list(zip(words, counts, strict=True)))
    return plot


def _list_effects(output: OutputEffect) -> list[Effect]:
    if output.why or not output.measure:
        return []
    return [
        Effect("The reconstruction", _write_figure(output.rebuilt), _write_share(output.same_rebuilt)),
        Effect("The mean of each unit", _write_figure(output.ablated), _write_share(output.same_ablated)),
    ]


def _write_figure(figure: Estimate) -> str:
    return _write(figure, lambda value: f"{value:.3g}")


def _write_share(figure: Estimate) -> str:
    return _write(figure, lambda value: f"{100 * value:.1f} %")


def _write(figure: Estimate, words: Any) -> str:
    """Format a figure with its 95 % interval, or the reason why it is missing; "" if it was not measured."""
    if figure.value is None:
        return figure.why
    if figure.low is None or figure.high is None:
        return f"{words(figure.value)} ({figure.why})" if figure.why else words(figure.value)
    return f"{words(figure.value)} [{words(figure.low)}, {words(figure.high)}]"
