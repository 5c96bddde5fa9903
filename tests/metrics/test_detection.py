"""Detection and intruder test: figures, counts, unread answers, weighted samples, what cannot be measured."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.support.sanity import make_units, share_falling
from workers.metrics.detection import score_detection, score_intruder
from workers.record.other_tests import DETECTION_CHANCE, INTRUDER_CHANCE, DetectionResult, IntruderResult

LIT = np.where(np.arange(1_000) < 200, 1.0 + np.arange(1_000), 0.0)
"""A unit that 200 of 1,000 images activate, above a threshold of 0."""
NAMES = (
    *(f"{name}, detection" for name in ("balanced accuracy", "F1", "precision", "recall")),
    "intruder test",
)


def test_a_label_that_is_right_is_right_about_every_image() -> None:
    found = score_detection(LIT, LIT > 0, 0.0)
    assert (found.balanced_accuracy.value, found.auc, found.f1, found.precision, found.recall) == (1, 1, 1, 1, 1)
    assert (found.confusion.hits, found.confusion.rejections, found.activating, found.images) == (100, 50, 200, 1_000)
    assert [each.n for each in found.deciles] == [10] * 10
    assert found.balanced_accuracy.low is not None
    assert 0.9 < found.balanced_accuracy.low < 1
    assert score_intruder(LIT, LIT > 0, 0.0).share.value == 1


@pytest.mark.parametrize("answer", [0.0, 1.0])
def test_a_label_that_says_the_same_of_all_images_is_at_chance(answer: float) -> None:
    said = np.full(1_000, answer)
    found = score_detection(LIT, said, 0.0)
    assert found.balanced_accuracy.value == found.auc == DETECTION_CHANCE
    assert found.precision == (pytest.approx(2 / 3) if answer else None)
    assert found.f1 == pytest.approx(0.8 if answer else 0)
    assert score_intruder(LIT, said, 0.0).share.value == pytest.approx(INTRUDER_CHANCE)


def test_the_curve_shows_where_a_label_stops_being_right() -> None:
    found = score_detection(LIT, LIT > 100, 0.0)
    shares = [each.value for each in found.deciles]
    assert shares[:4] == [0] * 4
    assert shares[6:] == [1] * 4
    assert found.recall == pytest.approx(0.5, abs=0.05)
    by_tenth = score_intruder(LIT, LIT > 100, 0.0).deciles
    assert by_tenth[0] == pytest.approx(INTRUDER_CHANCE)
    assert by_tenth[9] == 1


def test_figures_are_those_of_the_textbook() -> None:
    rng = np.random.default_rng(3)
    there = rng.random(150) < 0.5
    acts = np.where(np.arange(150) < 100, 1.0 + np.arange(150), 0.0)  # so that the sample is all there is
    found = score_detection(acts, there, 0.0)
    active = acts > 0
    recall, right, precision = there[active].mean(), (~there)[~active].mean(), active[there].mean()
    assert found.balanced_accuracy.value == pytest.approx((recall + right) / 2)
    assert found.auc == pytest.approx((recall + right) / 2)
    assert (found.precision, found.recall) == (pytest.approx(precision), pytest.approx(recall))
    assert found.f1 == pytest.approx(2 * precision * recall / (precision + recall))


def test_answers_that_could_not_be_read_count_as_wrong() -> None:
    said = (LIT > 0).astype(float)
    said[::4] = np.nan
    found = score_detection(LIT, said, 0.0)
    counts = found.confusion
    lost = counts.failed_activating + counts.failed_others
    assert lost > 20
    assert found.failed.value == pytest.approx(lost / 150)
    hits, rejections = counts.hits / 100, counts.rejections / 50
    assert found.balanced_accuracy.value == pytest.approx((hits + rejections) / 2)
    assert found.recall == pytest.approx(hits)
    assert found.auc is not None
    assert found.auc < 0.8
    assert sum(msgspec.to_builtins(counts).values()) == 150
    intruder = score_intruder(LIT, said, 0.0)
    assert intruder.failed > 20
    assert intruder.share.value == pytest.approx(1 - intruder.failed / intruder.share.n)
    nothing = score_detection(LIT, np.full(1_000, np.nan), 0.0)
    assert (nothing.balanced_accuracy.value, nothing.auc, nothing.failed.value) == (0, 0, 1)


def test_a_tie_with_the_intruder_counts_as_many_parts_as_tie() -> None:
    lit = np.where(np.arange(60) < 40, 1.0, 0.0)  # a set of four a tenth
    said = np.where(lit > 0, 0.6, 0.4)
    assert score_intruder(lit, said, 0.5).share.value == 1, "grades count, not yes or no alone"
    assert score_intruder(lit, 1 - said, 0.5).share.value == 0
    found = score_intruder(lit, np.full(60, 0.4), 0.5)
    assert (found.share.value, found.share.n) == (pytest.approx(0.2), 10)


def test_a_weighted_sample_says_the_same_as_all_images() -> None:
    """Images that the label describes are asked about ten times as often, and weigh a tenth."""
    rng = np.random.default_rng(0)
    acts = rng.normal(0, 1, 40_000)
    said = ((acts > 1) & (rng.random(40_000) < 0.3) | (rng.random(40_000) < 0.1)).astype(float)
    asked = rng.random(40_000) < np.where(said > 0, 0.2, 0.02)
    weights = np.where(said > 0, 1.0, 10.0)
    weighed = score_detection(acts[asked], said[asked], 1.0, weights[asked])
    truth = (said[acts > 1].mean() + 1 - said[acts <= 1].mean()) / 2
    assert weighed.balanced_accuracy.value == pytest.approx(truth, abs=0.03)
    assert weighed.recall == pytest.approx(said[acts > 1].mean(), abs=0.05)
    assert weighed.balanced_accuracy.n == asked.sum()
    # Images without weight were not asked about, so that they have not failed
    unasked = score_detection(acts, np.where(asked, said, np.nan), 1.0, np.where(asked, weights, 0.0))
    assert unasked.failed.value == 0
    assert unasked.balanced_accuracy.value == pytest.approx(weighed.balanced_accuracy.value)


@pytest.mark.parametrize(
    ("active", "others", "words"),
    [(19, 500, "19 images activate the unit"), (500, 19, "19 images do not activate"), (0, 0, "0 images activate")],
)
def test_too_few_images_of_either_kind_say_so(active: int, others: int, words: str) -> None:
    acts = np.append(np.ones(active), np.zeros(others))
    for found in (score_detection(acts, acts, 0.5).balanced_accuracy, score_intruder(acts, acts, 0.5).share):
        assert found.value is None
        assert words in found.why


def test_what_is_found_can_be_kept() -> None:
    said = np.where(np.random.default_rng(2).random(1_000) < 0.5, LIT > 100, np.nan)
    detection, intruder = score_detection(LIT, said, 0.0), score_intruder(LIT, said, 0.0)
    assert msgspec.json.decode(msgspec.json.encode(detection), type=DetectionResult) == detection
    assert msgspec.json.decode(msgspec.json.encode(intruder), type=IntruderResult) == intruder
    assert score_detection(LIT, said, 0.0) == detection, "the same sample by the same seed"
    assert score_detection(LIT, said, 0.0, seed=1) != detection


def test_wrong_vectors_are_refused() -> None:
    with pytest.raises(ValueError, match="2 activations, 1 answers"):
        score_detection([1, 2], [1], 0.0)


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    held = 0
    for seed in range(200):
        acts = rng.normal(0, 1, 1_000)
        said = rng.random(1_000) < np.where(acts > 0.5, 0.8, 0.1)
        found = score_detection(acts, said, 0.5, seed=seed).balanced_accuracy
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0.85 <= found.high
    assert held / 200 >= 0.92


def test_detection_falls_for_narrow_labels_and_need_not_for_broad_ones() -> None:
    """What the page says of each figure; the numbers are in `workers.metrics.detection`."""
    units = make_units(60, 0.1, seed=12)
    found = {metric: share_falling(f"{metric}, 30% activate", units) for metric in NAMES}
    for name in ("balanced accuracy, detection", "F1, detection", "intruder test"):
        narrow, broad = found[name]
        assert narrow > 0.9 > broad
    assert found["precision, detection"][0] < 0.5
    assert found["recall, detection"][1] == 0
