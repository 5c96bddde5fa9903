"""Ablations (paper, section 4.3, Table A5): the same neurons with fewer tools, and with a flawed generator.

The full toolset comes first. Every other one is compared with it, paired by unit.
"""

from __future__ import annotations

from collections.abc import Sequence

from experiments.models import Evaluation, EvaluationItem
from workers import registry
from workers.jobs.evaluations import figures
from workers.jobs.evaluations.evaluation_type import EvaluationType
from workers.jobs.evaluations.sources import AGENT
from workers.jobs.evaluations.synthetic import choose_neurons
from workers.jobs.evaluations.truth import score_truth
from workers.protocols import Progress
from workers.record.evaluations import EvaluationResult, Figure

FULL = "toybox"
ABLATED = ("toybox-exemplars", "toybox-generated", "toybox-no-edits", "toybox-flawed")
"""Toolsets compared with the full one: exemplars only, generated images only, no edits, a flawed generator."""


def _plan(evaluation: Evaluation, progress: Progress) -> list[EvaluationItem]:
    del progress
    toolsets = [each for each in (FULL, *ABLATED) if each in registry.TOOLSETS]
    return [
        EvaluationItem(
            group=kind, source=AGENT, unit=neuron.unit, unit_name=neuron.unit_name, options={"toolset": toolset}
        )
        for neuron, kind in choose_neurons(evaluation)
        for toolset in toolsets
    ]


def _summarise(evaluation: Evaluation, items: Sequence[EvaluationItem]) -> EvaluationResult:
    del evaluation
    toolsets = list(dict.fromkeys(str(item.options["toolset"]) for item in items))
    done = {
        toolset: [each for each in figures.filter_source(items, AGENT) if each.options["toolset"] == toolset]
        for toolset in toolsets
    }
    right, r = figures.score_of("right"), figures.score_of("pearson")
    shares: list[tuple[str, Figure]] = []
    medians = []
    for toolset, chosen in done.items():
        name = registry.TOOLSETS[toolset].label
        shares.append((name, figures.share_figure(f"{toolset}.right", name, chosen, "right")))
        medians.append(figures.median_figure(f"{toolset}.pearson", f"{name}: median r", map(r, chosen)))
    pairs = [
        figures.PlannedComparison(
            f"difference.{toolset}.{name}",
            f"Full less {registry.TOOLSETS[toolset].label.lower()}: {words}",
            # A missing label counts as wrong, so that abstaining is no advantage.
            figures.get_scores_by_unit(done[FULL], score, 0.0),
            figures.get_scores_by_unit(chosen, score, 0.0),
        )
        for toolset, chosen in done.items()
        if toolset != FULL
        for name, words, score in (("right", "share right", right), ("pearson", "r", r))
    ]
    return EvaluationResult(
        (*(figure for _, figure in shares), *medians, *figures.compare(pairs)),
        (),
        (figures.interval_plot("right", "Share with exactly the right concepts, by toolset", "share", shares),),
        tuple(figures.note_lacking(items)),
    )


EVALUATION_TYPE = EvaluationType(_plan, _summarise, score_truth)
