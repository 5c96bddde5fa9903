"""Figures of the pooled comparison: means by source, Table A3 by layer, differences paired by unit, missing labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from experiments.models import EvaluationItem
from experiments.pairwise.of_evaluation import name_source
from workers.jobs.evaluations import figures
from workers.record.evaluations import EvaluationResult, Figure, ResultNote, ResultTable

_NOTE = "Labels that are too narrow may score well here: prefer r and AUPRC on natural images."
_SIDES = (("positive", "entailed most"), ("neutral", "entailed least"))
_POSITIVE, _NEUTRAL, _DIFFERENCE = (
    figures.score_of(f"pooled_{name}") for name in ("positive", "neutral", "difference")
)


def add_pooled(
    result: EvaluationResult, items: Sequence[EvaluationItem], groups: Sequence[str], sources: Sequence[str]
) -> EvaluationResult:
    """Return the result with the pooled comparison, if any was tried. The first source is compared with each other
    one."""
    tried = [item for item in items if "pooled_positive" in item.scores or "pooled_problem" in item.scores]
    if not tried:
        return result
    means = [
        (
            name_source(source),
            figures.mean_figure(
                f"pooled.{source}.{name}",
                f"{name_source(source)}, pooled: mean activation on the 7 prompts {words}",
                map(figures.score_of(f"pooled_{name}"), figures.filter_source(items, source)),
            ),
        )
        for source in sources
        for name, words in _SIDES
    ]
    short = [
        (name, replace(figure, label=f"{name}, {figure.label.rpartition(' prompts ')[2]}")) for name, figure in means
    ]
    return replace(
        result,
        figures=(*result.figures, *(figure for _, figure in means), *_compare(items, sources)),
        tables=(*result.tables, _write_table(items, groups, sources)),
        plots=(*result.plots, figures.interval_plot("pooled", "Pooled prompts", "mean activation", short)),
        notes=(*result.notes, *_note_lacking(items, sources)),
    )


def _compare(items: Sequence[EvaluationItem], sources: Sequence[str]) -> list[Figure]:
    """Compare how well labels separate prompts, in standard deviations of the unit's activations, over units with both
    labels."""
    first = figures.get_scores_by_unit(figures.filter_source(items, sources[0]), _DIFFERENCE)
    return figures.compare(
        [
            figures.PlannedComparison(
                f"pooled.difference.{source}",
                f"{name_source(sources[0])} less {name_source(source).lower()}: entailed most less least, in SD",
                first,
                figures.get_scores_by_unit(figures.filter_source(items, source), _DIFFERENCE),
            )
            for source in sources[1:]
        ]
    )


def _write_table(items: Sequence[EvaluationItem], groups: Sequence[str], sources: Sequence[str]) -> ResultTable:
    """Return Table A3: both means of each source side by side."""
    title = "Mean activation on pooled prompts, entailed most and least"
    positive, neutral = (
        figures.group_table("pooled", title, items, score, groups, sources) for score in (_POSITIVE, _NEUTRAL)
    )
    rows = tuple(
        (one[0], *(cell for pair in zip(one[1:], other[1:], strict=True) for cell in pair))
        for one, other in zip(positive.rows, neutral.rows, strict=True)
    )
    columns = tuple(f"{name_source(source)}, {side}" for source in sources for side in ("most", "least"))
    return replace(positive, columns=("", *columns), rows=rows, note=f"{positive.note} {_NOTE}")


# One item of each unit names it.
def _note_lacking(items: Sequence[EvaluationItem], sources: Sequence[str]) -> list[ResultNote]:
    """Return notes on units that a source has no pooled score for, and on the reasons."""
    units = {item.unit_id: item for item in items}
    notes = []
    for source in sources:
        has = {item.unit_id for item in items if item.source == source and "pooled_positive" in item.scores}
        lacking = [item for unit, item in units.items() if unit not in has]
        if lacking:
            words = f"Pooled prompts: {name_source(source)} has no part in {len(lacking)} of {len(units)}"
            notes.append(figures.name_items(words, lacking))
    problems: dict[str, int] = defaultdict(int)
    for item in items:
        if problem := item.scores.get("pooled_problem"):
            problems[str(problem)] += 1
    return [*notes, *(ResultNote(f"Pooled prompts, {count} labels: {problem}") for problem, count in problems.items())]
