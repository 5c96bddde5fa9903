"""Labels are judged by scenes that neither the agent nor anybody else chose; the numbers are exact."""

from __future__ import annotations

import pytest

from tests.support.label_auc import label_auc, shuffle_labels
from workers.toybox.world.concepts import matches_any, parse_label


def detector(label):
    """A unit that is exactly what a label says."""
    return lambda scenes: [float(matches_any(parse_label(label), scene)) for scene in scenes]


@pytest.mark.parametrize("label", ["red balls", "night scenes", "small things OR cars on sand", "cups on tables"])
def test_the_right_label_of_a_perfect_unit_has_an_auc_of_one(label):
    assert label_auc(label, detector(label), seed=0) == 1


def test_a_unit_that_always_answers_the_same_has_an_auc_of_a_half():
    assert label_auc("red balls", lambda scenes: [7.0] * len(scenes), seed=0) == 0.5


def test_a_label_that_is_too_narrow_or_wrong_has_a_lower_auc():
    def mean(label: str) -> float:
        return sum(label_auc(label, detector("red balls"), seed) for seed in range(4)) / 4

    assert mean("small red balls") < 0.9
    assert mean("red balls with a cube") < 0.95
    assert mean("blue cars") < 0.6


def test_shuffled_labels_never_come_back_to_their_unit():
    for count in range(2, 9):
        dealt = shuffle_labels(count, seed=count)
        assert sorted(dealt) == list(range(count))
        assert all(unit != label for unit, label in enumerate(dealt))
    assert shuffle_labels(1, 0) == [0]
