"""Areas and average precisions, to the last digit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workers.metrics import ranking


def test_average_precision_is_the_mean_precision_at_each_positive() -> None:
    scores, truth = np.array([0.9, 0.8, 0.7, 0.6]), np.array([True, False, True, False])
    assert ranking.average_precision(scores, truth) == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert ranking.average_precision(-scores, truth) == pytest.approx((1 / 2 + 2 / 4) / 2)


def test_equal_scores_share_their_precision_whatever_their_order() -> None:
    scores = np.array([1.0, 1.0, 0.0])
    for truth in ([True, False, False], [False, True, False]):
        assert ranking.average_precision(scores, np.array(truth)) == 0.5


def test_average_precision_without_positives_is_undefined() -> None:
    assert math.isnan(ranking.average_precision(np.array([1.0]), np.array([False])))


def test_area_under_curve_counts_ties_half() -> None:
    assert ranking.area_under_curve(np.array([2.0, 1.0]), np.array([1.0, 0.0])) == pytest.approx((2 + 1 + 0.5) / 4)
    assert ranking.area_under_curve(np.array([3, 4]), np.array([1, 2])) == 1
    assert ranking.area_under_curve(np.array([1, 2]), np.array([3, 4])) == 0
    assert ranking.area_under_curve(np.array([5, 5]), np.array([5, 5])) == 0.5
    assert ranking.area_under_curve(np.array([2, 1, 0]), np.array([1, 0])) == pytest.approx((2 + 1.5 + 0.5) / 6)
    assert math.isnan(ranking.area_under_curve(np.array([]), np.array([1.0])))


def test_average_precision_takes_weights_as_repeats() -> None:
    rng = np.random.default_rng(3)
    scores, truth = rng.integers(0, 5, 40).astype(float), rng.random(40) < 0.3
    counts = rng.integers(0, 4, (3, 40))
    for row, found in zip(counts, ranking.weighted_average_precision(scores, truth, counts), strict=True):
        assert found == pytest.approx(ranking.average_precision(np.repeat(scores, row), np.repeat(truth, row)))


def test_average_precision_takes_how_much_of_a_positive_each_is() -> None:
    assert ranking.average_precision(np.array([2.0, 1.0]), [0.5, 0.5]) == pytest.approx((0.5 * 0.5 + 0.5 * 0.5) / 1)


def test_right_choices_are_those_of_the_exciting_image() -> None:
    activations = np.array([0.0] * 50 + [each / 1000 for each in range(1, 46)] + [1.0] * 5)
    right = [1.0 if each == 1 else 0.0 for each in activations]
    assert ranking.measure_choices(activations, right) == 1.0
    assert ranking.measure_choices(activations, [1 - each for each in right]) == 0.0
    assert ranking.measure_choices(activations, [0.0] * 100) == ranking.CHANCE, "a label of nothing is a guess"
    half = [0.0] * 95 + [1.0, 1.0, None, 0.0, 0.0]
    assert ranking.measure_choices(activations, half) == pytest.approx((2 + 2 / 2) / 4), "ties count half"


def test_a_unit_that_nothing_excites_leaves_no_choice() -> None:
    assert ranking.measure_choices([], []) is None
    assert ranking.measure_choices([5.0, 2.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]) == 1.0, "2 is not half as strong as 5"
    assert ranking.measure_choices([2.0] * 9, [1.0] * 9) is None
    assert ranking.measure_choices([1.0, 0.0], [None, None]) is None
