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
    assert (found.high, intervals.estimate_share(0, 7).low) == (1, 0), "not 5.6e-17"
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


def test_the_mean_is_that_of_student_and_knows_clusters() -> None:
    values = np.random.default_rng(6).normal(0, 1, 12)
    found = intervals.estimate_mean([*values, np.nan])
    low, high = stats.t.interval(0.95, 11, values.mean(), stats.sem(values))
    assert (found.low, found.high, found.n) == pytest.approx((low, high, 12))
    copied = intervals.estimate_mean(np.tile(values, 3), [*range(12)] * 3)
    assert (copied.low, copied.high, copied.n) == pytest.approx((low, high, 12))
    blind = intervals.estimate_mean(np.tile(values, 10))
    assert blind.high - blind.low < (high - low) / 2
    with pytest.raises(ValueError, match="2 clusters for 12 values"):
        intervals.estimate_mean(values, ["a", "b"])


@pytest.mark.parametrize(
    ("total", "low", "high"), [(0, 0, 3.689), (1, 0.0253, 5.572), (5, 1.623, 11.668), (10, 4.795, 18.390)]
)
def test_counts_have_the_limits_of_garwoods_table(total: int, low: float, high: float) -> None:
    found = intervals.estimate_counts([total, 0])
    wider = intervals.estimate_counts([total]) if total else found
    assert wider.high * wider.n == pytest.approx(high, abs=1e-3)
    assert wider.low * wider.n == pytest.approx(low, abs=1e-3)


def test_counts_that_vary_more_than_by_chance_are_less_certain() -> None:
    even, uneven = intervals.estimate_counts([4, 5, 6, 5]), intervals.estimate_counts([0, 0, 0, 20])
    assert even.value == uneven.value == 5
    assert uneven.high > even.high
    assert uneven.low == 0


def test_the_median_lies_between_two_values_by_the_sign_test() -> None:
    values = np.random.default_rng(7).permutation(np.arange(1.0, 13.0))
    found = intervals.estimate_median(values)
    assert (found.value, found.low, found.high, found.n) == (6.5, 3, 10, 12)  # 2 P(X <= 2) of 12 throws is 0.039
    assert intervals.estimate_median(values[:6]).low == min(values[:6])
    few = intervals.estimate_median(values[:5])
    assert (few.value, few.low) == (np.median(values[:5]), None)
    assert "5 values are too few" in few.why


def test_a_difference_is_paired() -> None:
    rng = np.random.default_rng(4)
    units = rng.normal(0, 10, 50)
    found = intervals.estimate_difference(units + 0.5 + rng.normal(0, 0.1, 50), units)
    assert 0.4 < found.low < found.value < found.high < 0.6
    assert intervals.estimate_difference([1.0, np.nan, 3.0], [0.0, 0.0, 1.0]).n == 2
    with pytest.raises(ValueError, match="1 and 2 values"):
        intervals.estimate_difference([1.0], [1.0, 2.0])


def test_a_difference_of_shares_has_tangos_interval() -> None:
    one, two = [1] * 9 + [0] + [1] * 34, [0] * 9 + [1] + [1] * 34
    found = intervals.estimate_difference(one, two)
    assert found.value == pytest.approx(8 / 44)
    z = stats.norm.ppf(0.975)
    for end in (found.low, found.high):
        # The score is z at either end
        b = -(9 + 1) + (2 * 44 - 9 + 1) * end
        share = (np.sqrt(b * b + 8 * 44 * 1 * end * (1 - end)) - b) / (4 * 44)
        score = (9 - 1 - 44 * end) / np.sqrt(44 * (2 * share + end * (1 - end)))
        assert abs(score) == pytest.approx(z, abs=1e-6)


@pytest.mark.parametrize(("first", "second", "value"), [(1, 1, 0), (1, 0, 1), (0, 1, -1)])
def test_shares_that_agree_on_all_units_are_not_certain(first: int, second: int, value: int) -> None:
    found = intervals.estimate_difference([first] * 7, [second] * 7)
    assert found.value == value
    assert found.high - found.low > 0.3
    assert -1 <= found.low <= value <= found.high <= 1


def test_a_gap_closed_is_a_ratio_of_means() -> None:
    found = intervals.estimate_gap([0.78, 0.80, 0.82], [0.7, 0.71, 0.69], [0.8, 0.82, 0.81])
    assert found.value == pytest.approx((0.8 - 0.7) / (0.81 - 0.7))
    assert found.low <= found.value <= found.high
    assert found.n == 3
    assert intervals.estimate_gap([0.8, 0.8], [0.7, 0.7], [0.7, 0.7]).why == "there is no gap"
    unsure = intervals.estimate_gap([0.8, 0.7, 0.75], [0.7, 0.7, 0.7], [0.6, 0.9, 0.71])
    assert (unsure.low, unsure.why) == (None, "the gap itself may be 0")


def test_fiellers_interval_is_where_the_ratio_is_not_refuted() -> None:
    rng = np.random.default_rng(8)
    base, ceiling = rng.normal(0.6, 0.02, 5), rng.normal(0.8, 0.02, 5)
    reached = base + 0.7 * (ceiling - base) + rng.normal(0, 0.01, 5)
    found = intervals.estimate_gap(reached, base, ceiling)
    for end in (found.low, found.high):
        p = stats.ttest_1samp(reached - base - end * (ceiling - base), 0).pvalue
        assert p == pytest.approx(0.05, abs=1e-6)
    with pytest.raises(ValueError, match="no triples"):
        intervals.estimate_gap([1.0], [1.0, 2.0], [1.0])


@pytest.mark.parametrize(
    "estimate",
    [
        intervals.estimate_mean,
        intervals.estimate_median,
        intervals.estimate_counts,
        lambda values: intervals.estimate_difference(values, values),
        lambda values: intervals.estimate_gap(values, values, values),
    ],
)
def test_what_cannot_be_had_says_why(estimate) -> None:
    for values in ([], [np.nan, np.nan]):
        found = estimate(values)
        assert (found.value, found.low, found.n) == (None, None, 0)
        assert found.why


@pytest.mark.parametrize(
    "estimate",
    [
        intervals.estimate_mean,
        intervals.estimate_median,
        lambda values: intervals.estimate_difference(values, np.zeros(len(values))),
        lambda values: intervals.estimate_gap(values, np.zeros(len(values)), np.full(len(values), 0.9)),
    ],
)
def test_no_interval_is_a_point(estimate) -> None:
    found = estimate([0.7] * 8)
    assert found.value is not None
    assert (found.low, found.high) == (None, None)
    assert found.why == "all 8 are equal, which says nothing of how others vary"
    assert intervals.estimate_mean([0.7]).why == "one value has no spread"


def test_a_contrast_of_other_units_is_that_of_welch() -> None:
    one, two = [0.9, 0.7, 0.8, 0.95], [0.2, 0.6, 0.4]
    found, published = intervals.estimate_contrast(one, two), stats.ttest_ind(one, two, equal_var=False)
    ends = published.confidence_interval(0.95)
    assert found.value == pytest.approx(np.mean(one) - np.mean(two))
    assert (found.low, found.high, found.n) == (pytest.approx(ends.low), pytest.approx(ends.high), 7)
    assert intervals.estimate_contrast([*one, np.nan], two) == found


def test_a_contrast_without_spread_has_no_interval() -> None:
    assert intervals.estimate_contrast([], [1.0]).why == "one of the two sides is empty"
    for one, two in (([1.0], [0.0, 0.5]), ([1.0, 1.0], [0.0, 0.0])):
        found = intervals.estimate_contrast(one, two)
        assert found.value is not None
        assert (found.low, found.high) == (None, None)
        assert found.why
