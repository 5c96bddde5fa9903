"""Synthetic neurons with known truth (paper, section 4.2): does the label name the right concepts and predict
activations?

A seed gives a batch of new neurons: half with one concept, a quarter with two alternatives, a quarter with one that
counts only beside another. `right` requires exactly the concepts of the truth, none missing and none extra.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from experiments.models import Evaluation, EvaluationItem
from experiments.pairwise.of_evaluation import name_source
from workers.jobs.evaluations import figures
from workers.jobs.evaluations.evaluation_type import EvaluationType, find_layers, make_item
from workers.jobs.evaluations.pairwise_judging import finish_labels
from workers.jobs.evaluations.pooled_figures import add_pooled
from workers.jobs.evaluations.sources import AGENT, DEFERRED_SOURCES, ONE_SHOT, SHUFFLED
from workers.jobs.evaluations.truth import score_truth
from workers.protocols import Progress
from workers.record.evaluations import EvaluationResult, Figure

KINDS = {"mono": 0.5, "or": 0.25, "conditional": 0.25}
"""Layers of synthetic neurons and their shares of a batch."""
SINGLE = "mono"
"""The kind with one concept. A label from exemplars alone competes on equal terms there."""
GOALS = {"mono": 0.95, "or": 0.85, "conditional": 0.8}
SOURCES = (AGENT, ONE_SHOT, SHUFFLED)
DEFAULT_UNITS = 60


def choose_neurons(evaluation: Evaluation) -> list[tuple[EvaluationItem, str]]:
    """Return items without a source for the neurons of the batch, each with its kind, drawn by the evaluation's
    seed."""
    seed, count = evaluation.seed, int(evaluation.options.get("units") or DEFAULT_UNITS)
    layers = {layer.name: layer for layer in find_layers(str(evaluation.options.get("model") or _batch_of(seed)))}
    chosen: list[tuple[float, EvaluationItem, str]] = []
    for kind, wanted in _share_out(count, {kind: layers[kind].units for kind in KINDS}).items():
        layer = layers[kind]
        # The seed fixes the batch, so evaluations of other agents can reuse it
        numbers = sorted(random.Random(f"synthetic neurons {seed} {kind}").sample(range(layer.units), wanted))
        # Kinds alternate, so that an unfinished batch has its share of each
        chosen += [((at + 0.5) / wanted, make_item(layer, number, kind, ""), kind) for at, number in enumerate(numbers)]
    return [(item, kind) for _, item, kind in sorted(chosen, key=lambda each: (each[0], each[2]))]


def _share_out(count: int, there: Mapping[str, int]) -> dict[str, int]:
    """Return the number of neurons per kind, `count` in total or fewer if there are not enough."""
    found = dict.fromkeys(KINDS, 0)
    for done in range(1, count + 1):
        open_ones = [kind for kind in KINDS if found[kind] < there[kind]]
        if not open_ones:
            break
        # To the kind that is furthest behind its share, so that an unfinished batch is balanced too.
        found[max(open_ones, key=lambda kind: done * KINDS[kind] - found[kind])] += 1
    return found


def _batch_of(seed: int) -> str:
    """Return the model whose neurons a seed draws."""
    return f"synthetic:toybox-eyes:seed-{seed}"


def _plan(evaluation: Evaluation, progress: Progress) -> list[EvaluationItem]:
    del progress
    neurons = choose_neurons(evaluation)
    asked = evaluation.options.get("sources") or SOURCES
    items = []
    # Stable, so that sources keep their given order.
    for source in sorted(asked, key=lambda each: DEFERRED_SOURCES.get(each, 0)):
        for neuron, kind in neurons:
            items.append(EvaluationItem(group=kind, source=source, unit=neuron.unit, unit_name=neuron.unit_name))
    first = [each for each in items if each.source not in DEFERRED_SOURCES]
    units = {neuron.unit_id: place for place, (neuron, _) in enumerate(neurons)}
    first.sort(key=lambda each: units[each.unit_id])  # Unit by unit, so that an unfinished batch compares sources
    return [*first, *(each for each in items if each.source in DEFERRED_SOURCES)]


def _summarise(evaluation: Evaluation, items: Sequence[EvaluationItem]) -> EvaluationResult:
    del evaluation
    sources = list(dict.fromkeys(item.source for item in items))
    groups = [kind for kind in KINDS if any(item.group == kind for item in items)]
    shares: list[tuple[str, Figure]] = []
    for source in sources:
        for group in [*groups, ""]:
            chosen = [each for each in figures.filter_source(items, source) if group in ("", each.group)]
            key = ".".join(
                each for each in ("" if source == AGENT else f"baselines.{source}", group or "all", "right") if each
            )
            label = f"{name_source(source)}, {group or 'all'}"
            # Goals are set for the agent alone.
            goal = GOALS.get(group) if source == AGENT else None
            shares.append((name_source(source), figures.share_figure(key, label, chosen, "right", goal)))
    right, r = figures.score_of("right"), figures.score_of("pearson")
    single = [each for each in items if each.group == SINGLE]
    pairs = [
        figures.PlannedComparison(
            f"difference.{source}.{name}",
            f"Agent less {name_source(source).lower()}: {words}",
            figures.get_scores_by_unit(figures.filter_source(some, AGENT), score, 0.0),
            figures.get_scores_by_unit(figures.filter_source(some, source), score, 0.0),
        )
        for source in sources
        if source != AGENT
        for name, words, score, some in (
            ("right", "share right", right, items),
            (f"{SINGLE}.right", "share right of single causes", right, single),
            ("pearson", "r", r, items),
        )
    ]
    medians = [figure for _, figure in figures.list_medians(items, sources)]
    result = EvaluationResult(
        (*(figure for _, figure in shares), *medians, *figures.compare(pairs)),
        (figures.group_table("right", "Share with exactly the right concepts", items, right, groups, sources),),
        (
            figures.interval_plot("right", "Share with exactly the right concepts", "share", shares),
            figures.strip_plot("pearson", "r of each label", "r", items, r, sources),
        ),
        tuple(figures.note_lacking(items)),
    )
    return add_pooled(result, items, groups, sources)


EVALUATION_TYPE = EvaluationType(_plan, _summarise, score_truth, finish_labels)
