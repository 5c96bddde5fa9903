"""Figures, tables and plots of items: shares, counts, means and medians over units with intervals, and differences.

Comparisons are paired by unit, with Wilcoxon's test and Holm's correction over the planned pairs. Units without a label
from both sources are dropped and listed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from experiments.models import EvaluationItem, ItemStatus
from experiments.pairwise.of_evaluation import name_source
from workers.jobs.evaluations.sources import AGENT
from workers.metrics.intervals import (
    estimate_counts,
    estimate_difference,
    estimate_mean,
    estimate_median,
    estimate_share,
)
from workers.metrics.significance import compare_ranks, holm
from workers.record.estimates import Estimate
from workers.record.evaluations import Cell, Figure, Point, ResultNote, ResultPlot, ResultTable, Series

Score = Callable[[EvaluationItem], float | None]
NAMED = 8
"""Maximum number of units that a note lists."""


def score_of(name: str) -> Score:
    """Return a reader of a score; None if it was not measured."""

    def read(item: EvaluationItem) -> float | None:
        value = item.scores.get(name)
        return None if value is None or isinstance(value, str) else float(value)

    return read


SCORES = {
    "pearson": "median r",
    "auprc_above": "median AUPRC above its base rate",
    "generated_auc": "median AUC of 7 + 7",
}
"""Scores of a label from its check -> the name of their median. AUPRC is taken above its base rate, (AP - base) / (1 -
base): a label that fits most images has a high AUPRC by its base rate alone."""


def score_reader(name: str) -> Score:
    """Return a reader of a score in `SCORES`; None if the check could not measure this score of any label."""

    def read(item: EvaluationItem) -> float | None:
        value = _read_above(item) if name == "auprc_above" else score_of(name)(item)
        if value is not None:
            return value
        # The check measured natural images, but the label fits none of them: a score of 0
        natural = name != "generated_auc" and item.scores.get("base_rate") is not None
        # A missing or untestable label scores 0, so that abstaining is no advantage.
        return 0.0 if item.status == ItemStatus.LACKING or _is_untestable(item) or natural else None

    return read


def _is_untestable(item: EvaluationItem) -> bool:
    """True if the label has no content that images could show."""
    return item.scores.get("testable") is False


def _read_above(item: EvaluationItem) -> float | None:
    found, base = (score_of(name)(item) for name in ("auprc", "base_rate"))
    # A label that fits most images has a high AUPRC by its base rate alone.
    return None if found is None or base is None or base >= 1 else (found - base) / (1 - base)


def list_medians(
    items: Sequence[EvaluationItem], sources: Sequence[str], goals: Mapping[str, float] | None = None
) -> list[tuple[str, Figure]]:
    """Return the median of each score by source, with the number of testable labels. `goals` apply to the agent."""
    found = []
    for source in sources:
        own = filter_source(items, source)
        tested = sum(item.status == ItemStatus.DONE and not _is_untestable(item) for item in own)
        note = (
            f"{tested} of {len(own)} have a label that can be tested; the others count 0" if tested < len(own) else ""
        )
        for name, words in SCORES.items():
            median = median_figure(
                name if source == AGENT else f"baselines.{source}.{name}",
                f"{name_source(source)}, {words}",
                map(score_reader(name), own),
                (goals or {}).get(name) if source == AGENT else None,
            )
            found.append((name_source(source), replace(median, note=median.note or note)))
    return found


def filter_source(items: Iterable[EvaluationItem], source: str) -> list[EvaluationItem]:
    """Return the items of a source that are done, with or without a label. Failed and unfinished ones have no
    scores."""
    return [each for each in items if each.source == source and each.status in (ItemStatus.DONE, ItemStatus.LACKING)]


def share_figure(key: str, label: str, items: Sequence[EvaluationItem], name: str, goal: float | None = None) -> Figure:
    """Return the share of items with a true score. A missing label counts as wrong."""
    hits = sum(bool(item.scores.get(name)) for item in items)
    return _figure(key, label, estimate_share(hits, len(items)), goal)


def median_figure(key: str, label: str, values: Iterable[float | None], goal: float | None = None) -> Figure:
    """Return the median over units."""
    return _figure(key, label, estimate_median(_numbers(values)), goal)


def mean_figure(key: str, label: str, values: Iterable[float | None], goal: float | None = None) -> Figure:
    """Return the mean over units."""
    return _figure(key, label, estimate_mean(_numbers(values)), goal)


def count_figure(key: str, label: str, values: Iterable[float | None], goal: float | None = None) -> Figure:
    """Return the mean of counts, one per run."""
    return _figure(key, label, estimate_counts(_numbers(values)), goal)


@dataclass(frozen=True)
class PlannedComparison:
    """A planned comparison: its name, and the scores of both sides by unit."""

    key: str
    label: str
    first: Mapping[int, float]
    second: Mapping[int, float]


def compare(pairs: Sequence[PlannedComparison]) -> list[Figure]:
    """Return the mean difference of each comparison over units with both scores."""
    measured, tests = [], []
    for pair in pairs:
        # Paired: only units that both sides scored
        both = sorted(pair.first.keys() & pair.second.keys())
        one, two = (np.array([side[unit] for unit in both], dtype=np.float64) for side in (pair.first, pair.second))
        measured.append(estimate_difference(one, two) if both else Estimate(why="no unit has both"))
        tests.append(compare_ranks(one, two).p if both else None)
    known = [p for p in tests if p is not None]
    # Over all comparisons at once, since each one has its chance of a false find.
    adjusted = iter(holm(known))
    notes = ["" if p is None else f"Wilcoxon p = {p:.3g}, after Holm {next(adjusted):.3g}" for p in tests]
    return [
        _figure(pair.key, pair.label, found, None, note)
        for pair, found, note in zip(pairs, measured, notes, strict=True)
    ]


def get_scores_by_unit(items: Iterable[EvaluationItem], score: Score, missing: float | None = None) -> dict[int, float]:
    """Return scores by unit. Units without a score get `missing`, or are left out if it is None."""
    found = {}
    for item in items:
        value = score(item)
        value = missing if value is None else value
        if value is not None and item.unit_id is not None:
            found[item.unit_id] = value
    return found


def estimate_values(values: ArrayLike) -> Estimate:
    """Return the mean; for values of only 0 and 1 a share, whose interval does not shrink to a point."""
    found = np.asarray(values, dtype=np.float64)
    # Student's interval of equal values would have no width.
    if len(found) and set(found) <= {0.0, 1.0}:
        return estimate_share(float(found.sum()), len(found))
    return estimate_mean(found)


def group_table(
    key: str, title: str, items: Sequence[EvaluationItem], score: Score, groups: Sequence[str], sources: Sequence[str]
) -> ResultTable:
    """Return the mean of a score by group and source, and over all units (Table A3)."""

    def cells(name: str, chosen: Sequence[EvaluationItem]) -> tuple[Cell, ...]:
        columns = [
            estimate_values(_numbers(score(each) for each in filter_source(chosen, source))) for source in sources
        ]
        return (Cell(name), *(Cell(value=each.value, low=each.low, high=each.high, n=each.n) for each in columns))

    rows = [cells(group, [each for each in items if each.group == group]) for group in groups]
    names = tuple(name_source(source) for source in sources)
    return ResultTable(key, title, ("", *names), (*rows, cells("All", items)), "Means over units, with 95 % intervals.")


def interval_plot(key: str, title: str, x: str, figures: Sequence[tuple[str, Figure]]) -> ResultPlot:
    """Return a plot with a row for each figure and its interval."""
    series: dict[str, list[Point]] = defaultdict(list)
    for name, figure in figures:
        if figure.value is not None:
            series[name].append(Point(figure.value, 0.0, figure.low, figure.high, label=figure.label))
    return ResultPlot(key, title, "intervals", x, "", tuple(Series(name, tuple(each)) for name, each in series.items()))


def strip_plot(
    key: str, title: str, y: str, items: Sequence[EvaluationItem], score: Score, sources: Sequence[str]
) -> ResultPlot:
    """Return a plot with a dot for each unit, by source. Each dot links to its item."""
    series = []
    for place, source in enumerate(sources):
        points = [
            Point(float(place), value, item=item.pk, label=f"{item.unit_name}: {item.label}")
            for item in filter_source(items, source)
            if (value := score(item)) is not None
        ]
        series.append(Series(name_source(source), tuple(points)))
    return ResultPlot(key, title, "strip", "", y, tuple(series))


def name_items(words: str, items: Iterable[EvaluationItem]) -> ResultNote:
    """Return a note that lists the first units of these items."""
    cells = [Cell(item.unit_name.partition(" / ")[2], item=item.pk) for item in items]
    return ResultNote(words, tuple(cells[:NAMED]), max(0, len(cells) - NAMED))


def note_lacking(items: Sequence[EvaluationItem]) -> list[ResultNote]:
    """Return notes on missing labels by source, and on failed items."""
    notes = []
    for status, words in ((ItemStatus.LACKING, "has no label of"), (ItemStatus.FAILED, "failed on")):
        lacking: dict[str, list[EvaluationItem]] = defaultdict(list)
        for item in items:
            if item.status == status:
                lacking[item.source].append(item)
        notes += [name_items(f"{name_source(each)} {words} {len(some)}", some) for each, some in lacking.items()]
    return notes


def _figure(key: str, label: str, found: Estimate, goal: float | None, note: str = "") -> Figure:
    return Figure(key, label, found.value, found.low, found.high, found.n, goal, note or found.why)


def _numbers(values: Iterable[float | None]) -> NDArray[np.float64]:
    return np.array([value for value in values if value is not None], dtype=np.float64)
