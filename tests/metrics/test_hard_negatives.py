"""Hard negatives: the hardest images are taken, detection's share of easy ones is told, and what cannot be measured."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.support import layer_sanity
from tests.support.layer_sanity import make_layers, share_falling_in
from workers.metrics.detection import score_detection
from workers.metrics.hard_negatives import (
    MAX_NEIGHBOURS,
    find_neighbours,
    measure_likeness,
    measure_neighbours,
    score_hard_negatives,
)
from workers.record.other_tests import HardNegativesResult

LIT = np.where(np.arange(1_000) < 200, 1.0 + np.arange(1_000), 0.0)
"""A unit that 200 of 1,000 images activate, above a threshold of 0."""
HARD = np.where((np.arange(1_000) >= 200) & (np.arange(1_000) < 280), 1.0, 0.0)
"""The tenth of the others that is hardest."""


def test_a_label_that_also_fits_the_hard_images_falls_by_what_was_easy() -> None:
    said = (LIT > 0) | (HARD > 0)
    found = score_hard_negatives(LIT, said, 0.0, HARD)
    plain = score_detection(LIT, said, 0.0).balanced_accuracy
    assert (found.balanced_accuracy.value, found.described.value, found.auc) == (0.5, 1, 0.5)
    assert (found.images, found.low) == (800, 0)
    assert plain.value is not None
    assert found.drop.value == pytest.approx(plain.value - 0.5)
    assert found.drop.low is not None
    assert found.drop.low > 0.3
    right = score_hard_negatives(LIT, LIT > 0, 0.0, HARD)
    assert (right.balanced_accuracy.value, right.drop.value) == (1, 0)


def test_unread_answers_of_hard_images_are_wrong() -> None:
    said = np.where(HARD > 0, np.nan, (LIT > 0).astype(float))
    found = score_hard_negatives(LIT, said, 0.0, HARD)
    assert (found.balanced_accuracy.value, found.failed) == (0.5, 50)


def test_images_of_middling_activation_are_no_hard_negatives() -> None:
    acts = np.linspace(0, 1, 1_000)
    found = score_hard_negatives(acts, acts > 0.8, 0.8, acts)
    assert found.images == 500
    assert found.low == pytest.approx(0.5, abs=0.01)


def test_likeness_is_by_other_units_and_neighbours_are_those_that_go_with_it() -> None:
    layer = make_layers(1, 0.1, seed=3)[0]
    acts, table = layer.activations, layer.table
    hardness = measure_likeness(acts, table, 0)
    assert hardness is not None
    assert hardness[layer.kin].mean() > hardness[~(layer.kin | layer.there)].mean() + 0.1
    changed = table.copy()
    changed[:, 0] = 0
    assert measure_likeness(acts, changed, 0) == pytest.approx(hardness), "its own activation is not used"
    found = find_neighbours(acts, table, 0)
    assert 0 < len(found) <= MAX_NEIGHBOURS
    assert {each.unit for each in found} <= {1, 2, 3, 4, 5}
    assert [each.r for each in found] == sorted((each.r for each in found), reverse=True)
    first = found[0]
    assert first.r == pytest.approx(np.corrcoef(acts, table[:, first.unit])[0, 1])
    ranks = measure_neighbours(table, found)
    assert ranks.max() == 1
    assert ranks[layer.kin].mean() > ranks[~(layer.kin | layer.there)].mean()


def test_a_layer_without_others_has_neither() -> None:
    assert measure_likeness(LIT, LIT[:, None], 0) is None
    assert find_neighbours(LIT, LIT[:, None], 0) == ()
    still = np.column_stack([LIT, np.zeros((1_000, 20))])
    assert measure_likeness(LIT, still, 0) is None


@pytest.mark.parametrize(
    ("active", "others", "words"), [(19, 500, "19 images activate"), (500, 19, "19 images do not"), (0, 0, "0 images")]
)
def test_too_few_images_say_so(active: int, others: int, words: str) -> None:
    acts = np.append(np.ones(active), np.zeros(others))
    found = score_hard_negatives(acts, acts, 0.5, acts)
    assert found.balanced_accuracy.value is None
    assert words in found.balanced_accuracy.why


def test_a_weighted_sample_takes_the_hardest_tenth_by_weight() -> None:
    weights = np.where(HARD > 0, 1.0, 4.0)
    found = score_hard_negatives(LIT, (LIT > 0) | (HARD > 0), 0.0, HARD, weights)
    # 80 of weight 1 are less than a tenth of 80 + 4 * 720, which takes 54 of weight 4 beside
    assert found.described.value == pytest.approx(80 / (80 + 4 * 54), abs=0.01)


def test_what_is_found_can_be_kept() -> None:
    found = score_hard_negatives(LIT, LIT > 100, 0.0, HARD)
    assert msgspec.json.decode(msgspec.json.encode(found), type=HardNegativesResult) == found
    assert score_hard_negatives(LIT, LIT > 100, 0.0, HARD) == found


@pytest.mark.parametrize("metric", [layer_sanity.alike, layer_sanity.neighbours])
def test_hard_negatives_see_a_label_that_is_too_broad_in_what_is_alike(metric: layer_sanity.Metric) -> None:
    """What the page says of them; the numbers are in `workers.metrics.hard_negatives`."""
    layers = make_layers(40, 0.1, seed=12)
    missing, extra, akin = share_falling_in(metric, layers, 0.3)
    assert missing > 0.9
    assert akin > 0.9 > extra
    assert share_falling_in(layer_sanity.detection, layers, 0.3)[2] < 0.9, "as detection does not"


def test_of_something_rare_too() -> None:
    _, extra, akin = share_falling_in(layer_sanity.alike, make_layers(20, 0.01, seed=12), 0.1)
    assert akin > 0.9 > 0.6 > extra
