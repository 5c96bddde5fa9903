"""Shares of votes: the unit is what varies."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from experiments.pairwise.proportions import Proportion, measure_proportion


def wilson(hits: int, n: int) -> tuple[float, float]:
    found = stats.binomtest(hits, n).proportion_ci(0.95, method="wilson")
    return float(found.low), float(found.high)


def test_one_vote_a_unit_is_wilsons() -> None:
    found = measure_proportion([(unit, unit < 7) for unit in range(11)])
    assert (found.hits, found.n, found.units) == (7, 11, 11)
    assert (found.low, found.high) == pytest.approx(wilson(7, 11))


def test_votes_that_all_agree_count_as_one_a_unit() -> None:
    found = measure_proportion([(unit, True) for unit in range(12) for _ in range(10)])
    assert (found.value, found.n, found.units) == (1, 120, 12)
    assert (found.low, found.high) == pytest.approx(wilson(12, 12))


def test_units_that_differ_make_votes_less_certain() -> None:
    rng = np.random.default_rng(0)
    even = [(unit, bool(rng.random() < 0.7)) for unit in range(20) for _ in range(10)]
    uneven = [(unit, unit < 14) for unit in range(20) for _ in range(10)]
    near, far = measure_proportion(even), measure_proportion(uneven)
    assert far.high - far.low > 2 * (near.high - near.low)
    low, high = wilson(14, 20)
    assert far.low <= low < high <= far.high, "with t for 20 units, a little wider than 20 votes"


def test_votes_on_one_unit_are_one_case_and_none_are_none() -> None:
    assert measure_proportion([("a", True)] * 9).low == pytest.approx(wilson(1, 1)[0])
    assert measure_proportion([("a", True), ("a", False)]).low < 0.1
    assert measure_proportion([]) == Proportion(0, 0)
