"""Tables that compare tests of labels: the result of each test by source and by label, and the agreement of tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from experiments.display.label_checks import read_check
from experiments.models import EvaluationItem, LabelCheck
from experiments.pairwise.of_evaluation import name_source
from workers.jobs.evaluations import figures
from workers.metrics.intervals import estimate_median
from workers.record.evaluations import Cell, ResultTable

TESTS = {
    "pearson": "r",
    "auprc": "AUPRC",
    "detection": "Detection",
    "alike": "Hard: alike",
    "neighbours": "Hard: neighbours",
    "fuzzing": "Fuzzing",
    "intruder": "Intruder",
    "simulation": "Simulation",
}
"""Scores of an item, and their names in tables."""
MIN_LABELS = 5
"""Minimum number of labels with both scores for a rank correlation."""


def read_test_scores(check: LabelCheck) -> dict[str, float | None]:
    """Return an item's scores of the tests other than r and AUPRC; empty for checks from before these tests."""
    natural = read_check(check).natural
    if natural is None or (tests := natural.other_tests) is None:
        return {}
    later = {"alike": tests.alike, "neighbours": tests.neighbours, "fuzzing": tests.fuzzing}
    return {
        "detection": tests.detection.balanced_accuracy.value,
        **{name: each.balanced_accuracy.value for name, each in later.items() if each is not None},
        "intruder": tests.intruder.share.value,
        "simulation": tests.simulation.explained_variance.value,
    }


def tabulate_tests(items: Sequence[EvaluationItem], sources: Sequence[str]) -> list[ResultTable]:
    """Return medians by source, each label of the first source, and rank correlations between tests; no tables if no
    label was tested this way. Missing scores are left out."""
    # Checks from before these tests have no such scores
    if not any(item.scores.get("detection") is not None for item in items):
        return []
    first = figures.filter_source(items, sources[0])
    own = f"{name_source(sources[0])}, {len(first)} labels"
    every = [item for source in sources for item in figures.filter_source(items, source)]
    tables = [_tabulate_medians(items, sources), _tabulate_labels(first, own), _correlate_tests("own", first, own)]
    return (
        tables if len(sources) == 1 else [*tables, _correlate_tests("all", every, f"all sources, {len(every)} labels")]
    )


def _read(items: Sequence[EvaluationItem], name: str) -> NDArray[np.float64]:
    """Return a score of each item, (items,); NaN if missing."""
    score = figures.score_of(name)
    return np.array([np.nan if (value := score(item)) is None else value for item in items], np.float64)


def _tabulate_medians(items: Sequence[EvaluationItem], sources: Sequence[str]) -> ResultTable:
    rows = []
    for name, words in TESTS.items():
        found = [estimate_median(_read(figures.filter_source(items, source), name)) for source in sources]
        rows.append((Cell(words), *(Cell(value=each.value, low=each.low, high=each.high, n=each.n) for each in found)))
    return ResultTable(
        "tests",
        "Median of each test",
        ("Test", *map(name_source, sources)),
        tuple(rows),
        "Detection, hard negatives and fuzzing by balanced accuracy, simulation by explained variance. Chance: r 0, "
        "AUPRC the base rate, balanced accuracy 0.5, intruder 0.2, simulation 0. Detection, with hard negatives too, "
        "fuzzing and the intruder test need not fall for a label that is too broad.",
    )


def _tabulate_labels(items: Sequence[EvaluationItem], title: str) -> ResultTable:
    rows = tuple(
        (
            Cell(item.unit_name.partition(" / ")[2], item=item.pk),
            Cell(item.label),
            *(Cell(value=figures.score_of(name)(item)) for name in TESTS),
        )
        for item in items
    )
    return ResultTable("tests.labels", f"Each label under each test: {title}", ("Unit", "Label", *TESTS.values()), rows)


def _correlate_tests(key: str, items: Sequence[EvaluationItem], title: str) -> ResultTable:
    """Return Spearman's rank correlation of each pair of tests over labels with both."""
    values = {name: _read(items, name) for name in TESTS}
    rows = tuple(
        (Cell(words), *(Cell(value=_correlate_ranks(values[one], values[two])) for two in TESTS))
        for one, words in TESTS.items()
    )
    note = "Rank correlation (Spearman) over labels; blank where a test gives all labels the same."
    return ResultTable(f"tests.{key}", f"How far tests agree: {title}", ("Test", *TESTS.values()), rows, note)


def _correlate_ranks(one: NDArray[np.float64], two: NDArray[np.float64]) -> float | None:
    """Return None with too few pairs, or if either side is constant."""
    both = np.isfinite(one) & np.isfinite(two)
    if both.sum() < MIN_LABELS or np.ptp(one[both]) == 0 or np.ptp(two[both]) == 0:
        return None
    return float(stats.spearmanr(one[both], two[both]).statistic)
