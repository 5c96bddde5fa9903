"""Agreement of reviewers: measures as published, undefined where they are, shown to whom they may be."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from experiments.reviews.agreement import measures
from experiments.reviews.agreement.measures import cohen_kappa, fleiss_kappa, krippendorff_alpha
from experiments.reviews.agreement.ratings import Level, RatedLine, Ratings

GAP = np.nan
OBSERVERS = [  # 4 observers, 12 units
    [1, 2, 3, 3, 2, 1, 4, 1, 2, GAP, GAP, GAP],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, GAP, 3],
    [GAP, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, GAP],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, GAP],
]
PSYCHIATRISTS = [  # 10 subjects, 14 raters, 5 categories: how many raters chose which
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]


def rated(rows: Sequence[Sequence[float]], level: Level, values: tuple[int, ...] = (1, 2, 3, 4, 5)) -> Ratings:
    """From a row for each reviewer."""
    table = np.array(rows, dtype=float).T
    return Ratings(RatedLine("line", "Line", level, values), table, tuple(range(table.shape[1])))


def two(counts: Sequence[Sequence[int]], level: Level = "nominal") -> Ratings:
    """Two reviewers, from the table of how often the first gave i and the second j."""
    size = range(len(counts))
    pairs = [(i, j) for i, j in product(size, size) for _ in range(counts[i][j])]
    return rated(list(zip(*pairs, strict=True)), level, tuple(size))


# --- published examples ---


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815)])
def test_alpha_is_that_of_krippendorffs_example(level: Level, alpha: float) -> None:
    """Computing Krippendorff's Alpha-Reliability (2011), section E: four observers, missing data."""
    found = krippendorff_alpha(rated(OBSERVERS, level))
    assert found.value == pytest.approx(alpha, abs=5e-4)
    assert found.n == 11, "the last item has one opinion alone"


def test_fleiss_kappa_is_that_of_the_known_example() -> None:
    """Fleiss 1971's form; ten subjects and fourteen raters, kappa 0.210."""
    columns = [[value for value, count in enumerate(row, 1) for _ in range(count)] for row in PSYCHIATRISTS]
    found = fleiss_kappa(rated(np.array(columns).T.tolist(), "nominal"))
    assert found.value == pytest.approx(0.210, abs=5e-4)
    assert (found.n, found.raters) == (10, 14)


@pytest.mark.parametrize(
    ("counts", "kappa"),
    [
        ([[20, 5], [10, 15]], 0.4),  # grants judged by two readers
        ([[45, 15], [25, 15]], 0.1304),  # the same agreement of 0.6, other margins
        ([[25, 35], [5, 35]], 0.2593),
        ([[88, 14, 18], [10, 40, 10], [2, 6, 12]], 0.492),  # Cohen 1960, table 1
    ],
)
def test_cohens_kappa_is_that_of_published_tables(counts: list[list[int]], kappa: float) -> None:
    assert cohen_kappa(two(counts), 0, 1).value == pytest.approx(kappa, abs=5e-4)


def test_weighted_kappa_is_what_its_definition_says() -> None:
    """Squared distances of all cells of the table, observed and expected."""
    counts = np.array([[11, 3, 1, 0], [1, 9, 0, 1], [0, 1, 10, 0], [1, 2, 0, 10]])
    weights = np.subtract.outer(np.arange(4), np.arange(4)) ** 2
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    wanted = 1 - (weights * counts).sum() / (weights * expected).sum()
    assert cohen_kappa(two(counts.tolist(), "ordinal"), 0, 1).value == pytest.approx(wanted)


# --- intervals ---


def test_the_interval_is_the_same_each_time_and_holds_the_value() -> None:
    krippendorff_alpha.cache_clear()
    one = krippendorff_alpha(rated(OBSERVERS, "ordinal"))
    krippendorff_alpha.cache_clear()
    other = krippendorff_alpha(rated(OBSERVERS, "ordinal"))
    assert one == other
    assert one.low < one.value < one.high <= 1
    assert one.few


def test_the_interval_covers_what_is_true_nearly_always() -> None:
    """Two readers who agree by chance alone: the interval of kappa holds 0 in about 95 of 100 samples."""
    rng = np.random.default_rng(7)
    found = [cohen_kappa(rated(rng.integers(1, 4, (2, 80)), "nominal"), 0, 1) for _ in range(60)]
    assert 52 <= sum(each.low <= 0 <= each.high for each in found) <= 60


def test_more_items_narrow_the_interval() -> None:
    rng = np.random.default_rng(3)
    widths = []
    for items in (20, 200):
        truth = rng.integers(1, 6, items)
        rows = [np.where(rng.random(items) < 0.7, truth, rng.integers(1, 6, items)) for _ in range(3)]
        found = krippendorff_alpha(rated(rows, "ordinal"))
        widths.append(found.high - found.low)
    assert widths[1] < widths[0] / 2


# --- what is undefined ---


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([[1, 2, 3]], measures.ONE_REVIEWER),
        ([[1, GAP], [GAP, 2]], measures.NO_ITEM),
        ([[1, 2, GAP], [1, GAP, 2]], measures.ONE_ITEM),
        ([[4, 4, 4], [4, 4, 4]], measures.ONE_VALUE),
    ],
)
def test_what_is_undefined_says_so_and_gives_no_number(rows: list[list[float]], why: str) -> None:
    for measure in (krippendorff_alpha, fleiss_kappa):
        found = measure(rated(rows, "ordinal"))
        assert (found.value, found.low, found.why) == (None, None, why)


def test_fleiss_takes_the_items_that_have_as_many_opinions_as_most() -> None:
    rows = [[1, 2, 3, 1, 2], [1, 2, 3, 1, 1], [1, 2, 3, GAP, GAP]]
    found = fleiss_kappa(rated(rows, "nominal"))
    assert (found.n, found.raters, found.value) == (3, 3, pytest.approx(1.0))
    uneven = [[1, 2], [1, 2], [1, GAP]]
    assert fleiss_kappa(rated(uneven, "nominal")).why == measures.UNEVEN


def test_too_few_items_have_a_value_and_no_interval() -> None:
    found = cohen_kappa(rated([[1, 2, 3], [1, 2, 2]], "ordinal"), 0, 1)
    assert found.value is not None
    assert (found.low, found.high) == (None, None)


def test_nearly_one_value_has_no_interval_rather_than_a_wrong_one() -> None:
    """Most resamples hold no item but those that all gave the same."""
    rows = [[5] * 30 + [4], [5] * 30 + [4]]
    found = krippendorff_alpha(rated(rows, "ordinal"))
    assert found.value == pytest.approx(1.0)
    assert found.low is None


def test_the_web_starts_without_the_libraries_of_agreement() -> None:
    program = (
        "import os, sys, django; os.environ['DJANGO_SETTINGS_MODULE'] = 'maia_web.settings'; django.setup();"
        "import maia_web.urls; print([name for name in ('numpy', 'scipy', 'krippendorff') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"
