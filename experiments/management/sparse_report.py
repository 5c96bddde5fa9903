"""The report of a sparse auto-encoder as text for a terminal. Used by the command `sae`."""

from __future__ import annotations

from collections.abc import Callable

from workers.record.estimates import Estimate
from workers.record.sparse_report import BinCounts, OutputEffect, SparseReport

_BAR = 40
_MEASURES = {
    "kl": "KL divergence from its own probabilities, nats",
    "binary_kl": "KL divergence from its own probabilities, summed over classes, nats",
    "change": "squared change, over the variance among images",
}


def format_report(report: SparseReport, trained: bool = True) -> str:
    """Format the measurements in lines, without a final line break. `trained`: here, so that its images are known."""
    active, similarity = report.active, report.similarity
    near = "" if similarity.near is None else f", {similarity.near:.1%} of latents above .9"
    mean = "" if similarity.mean is None else f": mean {similarity.mean:.2f}{near}"
    return "\n".join(
        [
            f"{report.name}: {report.latents:,} latents on {report.positions:,} positions of {report.images:,} images"
            f"{' that training never saw' if trained else ''}",
            "",
            f"Variance unexplained  {report.unexplained:.1%}",
            f"Active latents        {active.mean:.1f} at a position; 5 % of positions have {active.low:.0f} or fewer, "
            f"half {active.median:.0f}, 95 % {active.high:.0f}",
            f"Dead latents          {report.dead:,} of {report.latents:,} ({report.dead_share:.1%}), never active here",
            f"Encoder and decoder   cosine {report.encoder_cosine:.2f} on average",
            "",
            *_format_output(report.output),
            "",
            "Share of positions at which a latent is active",
            *_draw_bars(report.density, lambda edge: f"{10**edge:.1e}", {"never": report.dead}),
            "",
            f"Largest cosine to the decoder of another latent{mean}",
            *_draw_bars(similarity.histogram, lambda edge: f"{edge:.1f}", {}),
        ]
    )


def _format_output(output: OutputEffect) -> list[str]:
    if output.why:
        return [f"Model's own output: not measured: {output.why.rstrip('.')}."]
    lines = [
        f"Model's own output with the layer replaced ({_MEASURES[output.measure]})",
        f"with 95 % intervals over {output.rebuilt.n:,} images",
        f"  by the reconstruction      {_format_estimate(output.rebuilt, '.3g')}",
        f"  by the mean activation     {_format_estimate(output.ablated, '.3g')}",
        f"  recovered                  {_format_estimate(output.recovered, '.1%')}",
    ]
    if output.same_rebuilt.value is not None:
        lines += [
            f"  same answer, reconstructed {_format_estimate(output.same_rebuilt, '.1%')}",
            f"  same answer, mean          {_format_estimate(output.same_ablated, '.1%')}",
        ]
    return lines


def _format_estimate(figure: Estimate, form: str) -> str:
    """Format a figure with its 95 % interval, or say why there is none."""
    if figure.value is None:
        return f"none: {figure.why}"
    if figure.low is None or figure.high is None:
        return f"{figure.value:{form}} ({figure.why})"
    return f"{figure.value:{form}} [{figure.low:{form}}, {figure.high:{form}}]"


def _draw_bars(histogram: BinCounts, name: Callable[[float], str], before: dict[str, int]) -> list[str]:
    """Draw a line for each bin, from the first to the last that is not empty; `before` are further counts."""
    edges, counts = histogram.edges, histogram.counts
    # Empty bins at both ends are left out.
    held = [at for at, count in enumerate(counts) if count]
    shown = range(held[0], held[-1] + 1) if held else range(0)
    rows = [*before.items(), *((f"{name(edges[at])} to {name(edges[at + 1])}", counts[at]) for at in shown)]
    # At least 1, because it is a divisor.
    longest = max((count for _, count in rows), default=0) or 1
    width = max((len(label) for label, _ in rows), default=0)
    # The double minus rounds up, so that every count above 0 has a bar.
    return [f"  {label:>{width}}  {count:>7,}  {'#' * -(-_BAR * count // longest)}".rstrip() for label, count in rows]
