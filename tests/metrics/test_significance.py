"""Tests of hypotheses, and their p-values in families."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from workers.metrics import significance
from workers.record.estimates import benjamini_hochberg


def test_ranks_are_compared_as_wilcoxon_did() -> None:
    rng = np.random.default_rng(1)
    one, two = rng.normal(0.5, 1, 20), rng.normal(0, 1, 20)
    assert significance.compare_ranks(one, two).p == pytest.approx(stats.wilcoxon(one, two).pvalue)
    assert significance.compare_ranks([5, 6, 7, 8, 9.5], [1, 1, 1, 1, 1]).p == pytest.approx(2 / 2**5)


@pytest.mark.parametrize(("n", "p"), [(4, 0.125), (5, 0.0625), (8, 0.0078125)])
def test_scores_of_0_and_1_are_compared_by_the_sign_test(n: int, p: float) -> None:
    assert significance.compare_ranks([1] * n, [0] * n).p == pytest.approx(p)


def test_equal_differences_among_others_are_tested_over_all_signs() -> None:
    found = significance.compare_ranks([2, 2, 3, 5, 6], [1, 1, 1, 1, 1])
    assert found.p == pytest.approx(2 / 2**5)
    assert found == significance.compare_ranks([2, 2, 3, 5, 6], [1, 1, 1, 1, 1])


def test_ties_and_missing_values_are_left_out() -> None:
    found = significance.compare_ranks([1, 2, 3, np.nan, 5, 7], [1, 1, 2, 4, 4, 6])
    assert found.n == 4
    assert 0 < found.p < 1
    assert significance.compare_ranks([1, 2], [1, 2]) == significance.RankTest(None, 0, "no pair differs")
    with pytest.raises(ValueError, match="no pairs"):
        significance.compare_ranks([1], [1, 2])


def test_holm_by_hand() -> None:
    assert significance.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert significance.holm([0.6, 0.7]) == [1.0, 1.0]


def test_benjamini_and_hochberg_by_hand() -> None:
    assert benjamini_hochberg([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.02, 0.04, 0.04, 0.02])
    given = (np.random.default_rng(2).random(30) ** 3).tolist()
    assert benjamini_hochberg(given) == pytest.approx(stats.false_discovery_control(given))


@pytest.mark.parametrize(("adjust", "missing"), [(significance.holm, math.nan), (benjamini_hochberg, None)])
def test_a_test_that_could_not_be_made_does_not_count(adjust, missing) -> None:
    one, none, two = adjust([0.01, missing, 0.02])
    assert [one, two] == adjust([0.01, 0.02])
    assert none is None or math.isnan(none)
    assert adjust([]) == []


def test_what_is_no_p_value_is_refused_or_left_out() -> None:
    with pytest.raises(ValueError, match="no p-values"):
        significance.holm([1.2])
    assert benjamini_hochberg([1e300, 0.02, -1.0, math.nan]) == [None, 0.02, None, None]
