"""Figures of merit, to the last digit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workers.toybox.networks import evaluation


def test_the_mean_leaves_out_classes_without_positives() -> None:
    scores = np.array([[0.9, 0.1], [0.2, 0.3]])
    assert evaluation.mean_average_precision(scores, np.array([[True, False], [False, False]])) == 1.0


def test_top1_accuracy_counts_the_highest_score() -> None:
    scores = np.array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.4], [0.6, 0.5]])
    assert evaluation.top1_accuracy(scores, np.array([1, 0, 0, 0])) == 0.75


def test_intersection_over_union_of_a_hand_made_picture() -> None:
    truth = np.array([[0, 0, 1], [1, 1, 2]])
    predicted = np.array([[0, 1, 1], [1, 1, 0]])
    counts = evaluation.confusion(predicted, truth, 4)
    assert counts.sum() == 6
    assert counts[1, 1] == 3
    overlap = evaluation.intersection_over_union(counts)
    assert overlap[:3] == pytest.approx([1 / 3, 3 / 4, 0.0])
    assert math.isnan(overlap[3])
