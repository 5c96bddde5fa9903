"""Figures of merit, to the last digit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workers.toybox.networks import metrics


def test_average_precision_is_the_mean_precision_at_each_positive() -> None:
    scores, truth = np.array([0.9, 0.8, 0.7, 0.6]), np.array([True, False, True, False])
    assert metrics.average_precision(scores, truth) == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert metrics.average_precision(-scores, truth) == pytest.approx((1 / 2 + 2 / 4) / 2)


def test_equal_scores_share_their_precision_whatever_their_order() -> None:
    scores = np.array([1.0, 1.0, 0.0])
    for truth in ([True, False, False], [False, True, False]):
        assert metrics.average_precision(scores, np.array(truth)) == 0.5


def test_average_precision_without_positives_is_undefined() -> None:
    assert math.isnan(metrics.average_precision(np.array([1.0]), np.array([False])))


def test_the_mean_leaves_out_classes_without_positives() -> None:
    scores = np.array([[0.9, 0.1], [0.2, 0.3]])
    assert metrics.mean_average_precision(scores, np.array([[True, False], [False, False]])) == 1.0


def test_top1_accuracy_counts_the_highest_score() -> None:
    scores = np.array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.4], [0.6, 0.5]])
    assert metrics.top1_accuracy(scores, np.array([1, 0, 0, 0])) == 0.75


def test_intersection_over_union_of_a_hand_made_picture() -> None:
    truth = np.array([[0, 0, 1], [1, 1, 2]])
    predicted = np.array([[0, 1, 1], [1, 1, 0]])
    counts = metrics.confusion(predicted, truth, 4)
    assert counts.sum() == 6
    assert counts[1, 1] == 3
    overlap = metrics.intersection_over_union(counts)
    assert overlap[:3] == pytest.approx([1 / 3, 3 / 4, 0.0])
    assert math.isnan(overlap[3])


def test_area_under_curve_counts_ties_half() -> None:
    assert metrics.area_under_curve(np.array([2.0, 1.0]), np.array([1.0, 0.0])) == pytest.approx((2 + 1 + 0.5) / 4)
    assert metrics.area_under_curve(np.array([3, 4]), np.array([1, 2])) == 1
    assert metrics.area_under_curve(np.array([1, 2]), np.array([3, 4])) == 0
    assert metrics.area_under_curve(np.array([5, 5]), np.array([5, 5])) == 0.5
    assert metrics.area_under_curve(np.array([2, 1, 0]), np.array([1, 0])) == pytest.approx((2 + 1.5 + 0.5) / 6)
    assert math.isnan(metrics.area_under_curve(np.array([]), np.array([1.0])))
