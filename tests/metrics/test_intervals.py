"""Figures with intervals: by hand where a hand can, else by how often they hold what they should."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from workers.metrics import intervals
from workers.metrics.ranking import area_under_curve


def test_a_share_has_the_interval_that_wilson_gave() -> None:
    found = intervals.estimate_share(12, 12)
    expected = stats.binomtest(12, 12).proportion_ci(0.95, method="wilson")
    assert (found.value, found.n) == (1.0, 12)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert intervals.estimate_share(621, 850).low == pytest.approx(0.6999, abs=1e-3), "0.73 of 85 units by 10 judges"


def test_a_share_of_nothing_says_so() -> None:
    assert intervals.estimate_share(0, 0) == intervals.Estimate(None, why="nothing was counted")
    with pytest.raises(ValueError, match="3 hits of 2"):
        intervals.estimate_share(3, 2)


def test_perfect_separation_is_no_certainty() -> None:
    found = intervals.estimate_area(1.0, 7, 7)
    assert found.high == 1.0
    assert found.low == pytest.approx(0.726, abs=0.001)  # worked by hand from his equation
    assert intervals.estimate_area(0.0, 7, 7).high == pytest.approx(1 - found.low)
    assert intervals.estimate_area(float("nan"), 7, 0).value is None


def test_the_interval_of_an_area_holds_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    truth = stats.norm.cdf(1.5 / np.sqrt(2))
    held = 0
    for _ in range(400):
        found = intervals.estimate_area(area_under_curve(rng.normal(1.5, 1, 10), rng.normal(0, 1, 10)), 10, 10)
        held += found.low <= truth <= found.high
    assert 0.91 <= held / 400 <= 0.99


def test_the_mean_of_many_has_the_interval_of_theory() -> None:
    values = np.random.default_rng(1).normal(2, 3, 400)
    found = intervals.estimate_mean([*values, np.nan], seed=1)
    error = 1.96 * values.std() / 20
    assert (found.value, found.n) == (pytest.approx(values.mean()), 400)
    assert (found.low, found.high) == pytest.approx((values.mean() - error, values.mean() + error), abs=0.02)
    assert found == intervals.estimate_mean(values, seed=1)
    assert found != intervals.estimate_mean(values, seed=2)


def test_the_median_is_that_of_numpy() -> None:
    for n in (7, 8):
        values = np.random.default_rng(n).normal(0, 1, n)
        found = intervals.estimate_median(values)
        assert found.value == pytest.approx(np.median(values))
        drawn = np.random.default_rng(9).choice(values, (4000, n))
        assert found.low == pytest.approx(np.quantile(np.median(drawn, 1), 0.025), abs=0.2)


def test_copies_of_a_value_add_no_certainty_where_clusters_are_known() -> None:
    values = np.random.default_rng(2).normal(0, 1, 30)
    names = [f"unit {k}" for k in range(30)]
    once, copied = (intervals.estimate_mean(np.tile(values, k), names * k) for k in (1, 10))
    assert copied.n == once.n == 30
    assert copied.low == pytest.approx(once.low)
    blind = intervals.estimate_mean(np.tile(values, 10))
    assert blind.high - blind.low < (once.high - once.low) / 2
    with pytest.raises(ValueError, match="2 clusters for 30 values"):
        intervals.estimate_mean(values, ["a", "b"])


def test_a_difference_is_paired() -> None:
    rng = np.random.default_rng(4)
    units = rng.normal(0, 10, 50)
    found = intervals.estimate_difference(units + 0.5 + rng.normal(0, 0.1, 50), units)
    assert 0.4 < found.low < found.value < found.high < 0.6
    assert intervals.estimate_difference([1.0, np.nan, 3.0], [0.0, 0.0, 1.0]).n == 2
    with pytest.raises(ValueError, match="1 and 2 values"):
        intervals.estimate_difference([1.0], [1.0, 2.0])


def test_students_interval_is_that_of_scipy_and_knows_clusters() -> None:
    values = np.random.default_rng(6).normal(0, 1, 12)
    found = intervals.estimate_student(values)
    low, high = stats.t.interval(0.95, 11, values.mean(), stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high))
    copied = intervals.estimate_student(np.tile(values, 3), [*range(12)] * 3)
    assert (copied.low, copied.high, copied.n) == pytest.approx((low, high, 12))
    assert intervals.estimate_student([1.0]).why == "one value has no spread"


def test_a_gap_closed_is_a_ratio_of_means() -> None:
    found = intervals.estimate_gap([0.78, 0.80, 0.82], [0.7, 0.71, 0.69], [0.8, 0.82, 0.81])
    assert found.value == pytest.approx((0.8 - 0.7) / (0.81 - 0.7))
    assert found.low <= found.value <= found.high
    assert found.n == 3
    assert intervals.estimate_gap([0.8, 0.8], [0.7, 0.7], [0.7, 0.7]).why == "there is no gap"
    with pytest.raises(ValueError, match="no triples"):
        intervals.estimate_gap([1.0], [1.0, 2.0], [1.0])


@pytest.mark.parametrize(
    "estimate",
    [
        intervals.estimate_mean,
        intervals.estimate_median,
        intervals.estimate_student,
        lambda values: intervals.estimate_difference(values, values),
        lambda values: intervals.estimate_gap(values, values, values),
    ],
)
def test_what_cannot_be_had_says_why(estimate) -> None:
    for values in ([], [np.nan, np.nan]):
        found = estimate(values)
        assert (found.value, found.low, found.n) == (None, None, 0)
        assert found.why


def test_a_figure_that_most_resamples_lack_has_no_interval() -> None:
    def first(counts: np.ndarray) -> np.ndarray:
        return np.where(counts[:, 0] > 0, 1.0, np.nan)

    found = intervals.bootstrap(first, 50)
    assert (found.value, found.low) == (1.0, None)
    assert "undefined" in found.why
