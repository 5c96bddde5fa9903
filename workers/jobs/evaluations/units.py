"""Units of a trained network (paper, section 4.1): labels of several sources for the same units, drawn by a seed.

Results are medians of r and AUPRC by source, means by layer (Table A3), and differences paired by unit.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from experiments.models import Evaluation, EvaluationItem, Layer, LayerIndex
from experiments.pairwise.of_evaluation import name_source
from workers.jobs.evaluations import figures
from workers.jobs.evaluations.evaluation_type import EvaluationType, find_layers, make_item
from workers.jobs.evaluations.pairwise_judging import finish_labels
from workers.jobs.evaluations.pooled_figures import add_pooled
from workers.jobs.evaluations.sources import AGENT, DEFERRED_SOURCES, ONE_SHOT, SHUFFLED, find_dataset
from workers.jobs.evaluations.tables_of_tests import tabulate_tests
from workers.jobs.laboratory import laboratory
from workers.protocols import Progress
from workers.record.evaluations import EvaluationResult

SOURCES = (AGENT, ONE_SHOT, SHUFFLED)
DEFAULT_UNITS = 60
_KINDS = ("conv", "mlp", "latent")
"""Kinds of layers used if no layer is chosen. Their units have no known truth."""
GOALS = {"generated_auc": 0.9}


def _choose_units(evaluation: Evaluation, progress: Progress) -> list[EvaluationItem]:
    """Return items without a source: units drawn evenly from the layers, without dead ones."""
    wanted = evaluation.options.get("layers") or []
    model = str(evaluation.options.get("model") or "toybox")
    layers = [each for each in find_layers(model) if (each.name in wanted if wanted else each.kind in _KINDS)]
    count = int(evaluation.options.get("units") or DEFAULT_UNITS)
    dataset = find_dataset(evaluation, model)
    # Dead units are known only from the index
    laboratory().index(model, dataset).prepare([layer.name for layer in layers], progress)
    chosen: list[tuple[float, int, EvaluationItem]] = []
    for place, layer in enumerate(layers):
        # The remainder goes to the first layers
        share = count // len(layers) + (place < count % len(layers))
        numbers = draw_alive(layer, dataset, share, f"units {evaluation.seed} {layer.name}")
        drawn = [make_item(layer, number, layer.name, "") for number in sorted(numbers)]
        # Spread evenly over the whole, so that layers with fewer units alternate, too.
        chosen += [((at + 0.5) / len(drawn), place, item) for at, item in enumerate(drawn)]
    # Layers alternate, so that an unfinished evaluation covers all.
    return [item for _, _, item in sorted(chosen, key=lambda each: each[:2])]


def draw_alive(layer: Layer, dataset: str, count: int, lot: str) -> list[int]:
    """Draw up to `count` random units of an indexed layer, without those that no image activates."""
    dead = set(laboratory().index(layer.model.name, dataset).layer(layer.name).dead())
    LayerIndex.objects.filter(layer=layer, dataset__key=dataset).update(dead=sorted(dead))
    alive = [number for number in range(layer.units) if number not in dead]
    return random.Random(lot).sample(alive, min(count, len(alive)))


def _plan(evaluation: Evaluation, progress: Progress) -> list[EvaluationItem]:
    units = _choose_units(evaluation, progress)
    asked = [str(each) for each in evaluation.options.get("sources") or SOURCES]
    pairs = [(unit, source) for unit in units for source in asked if source not in DEFERRED_SOURCES]
    pairs += [(unit, source) for source in asked if source in DEFERRED_SOURCES for unit in units]
    return [
        EvaluationItem(group=unit.group, source=source, unit=unit.unit, unit_name=unit.unit_name)
        for unit, source in pairs
    ]


def summarise(evaluation: Evaluation, items: Sequence[EvaluationItem]) -> EvaluationResult:
    """Return the result; `labels` uses it too."""
    del evaluation
    sources = list(dict.fromkeys(item.source for item in items))
    groups = list(dict.fromkeys(item.group for item in items))
    first = sources[0] if sources else AGENT
    medians = figures.list_medians(items, sources, GOALS)
    pairs = [
        figures.PlannedComparison(
            f"difference.{source}.{name}",
            f"{name_source(first)} less {name_source(source).lower()}: {words.removeprefix('median ')}",
            figures.get_scores_by_unit(figures.filter_source(items, first), figures.score_reader(name)),
            figures.get_scores_by_unit(figures.filter_source(items, source), figures.score_reader(name)),
        )
        for source in sources[1:]
        for name, words in figures.SCORES.items()
    ]
    tables = [
        figures.group_table(
            name, f"Mean {words.removeprefix('median ')}", items, figures.score_reader(name), groups, sources
        )
        for name, words in figures.SCORES.items()
    ]
    result = EvaluationResult(
        (*(figure for _, figure in medians), *figures.compare(pairs)),
        (*tables, *tabulate_tests(items, sources)),
        (
            figures.interval_plot("medians", "Medians over units", "", medians),
            figures.strip_plot("pearson", "r of each label", "r", items, figures.score_of("pearson"), sources),
        ),
        tuple(figures.note_lacking(items)),
    )
    return add_pooled(result, items, groups, sources)


EVALUATION_TYPE = EvaluationType(_plan, summarise, finish=finish_labels)
