"""How far two groups of values lie apart."""

from __future__ import annotations

import pytest

from experiments.display.effect_sizes import bound_mean, describe_effect, separate, standardize


def test_the_auc_is_the_share_of_pairs_with_ties_counted_half() -> None:
    assert separate([3.0, 2.0], [1.0, 0.0]) == 1.0
    assert separate([1.0, 3.0], [1.0, 2.0]) == pytest.approx((0.5 + 0 + 1 + 1) / 4)
    assert separate([], [1.0]) is None


def test_cohens_d_takes_the_pooled_deviation_of_both_groups() -> None:
    # s1² = 4 of three values, s2² = 1 of three: pooled 2.5
    assert standardize([4.0, 6.0, 8.0], [1.0, 2.0, 3.0]) == pytest.approx(4 / 2.5**0.5)
    assert standardize([1.0], [2.0, 3.0]) is None
    assert standardize([1.0, 1.0], [0.0, 0.0]) is None


def test_what_cannot_be_computed_is_left_out_of_the_words() -> None:
    assert describe_effect([2.0, 3.0], [0.0, 1.0]) == "AUC 1.00 (Cliff's δ 1.00) · Cohen's d 2.83"
    assert describe_effect([2.0], [0.0]) == "AUC 1.00 (Cliff's δ 1.00)"
    assert describe_effect([], [0.0]) == ""


def test_an_interval_of_probabilities_never_leaves_them() -> None:
    values = [0.999, 0.99, 0.65, 0.98]
    plain, bounded = bound_mean(values), bound_mean(values, (0.0, 1.0))
    assert plain
    assert bounded
    assert plain[1] > 1.0 > bounded[1] > 0.9
    assert bounded[0] < sum(values) / 4
    assert bound_mean([1.0, 1.0], (0.0, 1.0)) == (1.0, 1.0)
    assert bound_mean([0.0, 1.0], (0.0, 1.0)) == pytest.approx((0.0, 1.0), abs=1e-6), "two values say nothing"


def test_an_interval_of_probabilities_is_students_where_the_ends_are_far() -> None:
    values = [0.5 + each / 1000 for each in range(-20, 21)]
    assert bound_mean(values, (0.0, 1.0)) == pytest.approx(bound_mean(values), abs=1e-4)
    changes = bound_mean([each - 0.5 for each in values], (-1.0, 1.0))
    assert changes == pytest.approx(bound_mean([each - 0.5 for each in values]), abs=1e-4)


def test_values_beyond_the_ends_are_no_probabilities() -> None:
    assert bound_mean([0.0, 3.0, 6.0], (0.0, 1.0)) == bound_mean([0.0, 3.0, 6.0])
