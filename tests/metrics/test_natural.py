"""Activation against presence: figures, intervals, and what cannot be had."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from workers.metrics import natural
from workers.metrics.natural import find_surprises, plan_images, score_natural
from workers.metrics.ranking import average_precision


def sample(n: int = 1000, base_rate: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A unit that likes what is there, with noise."""
    rng = np.random.default_rng(seed)
    there = rng.random(n) < base_rate
    return 2.0 * there + rng.normal(0, 1, n), there


def test_figures_are_those_of_the_textbook() -> None:
    activations, there = sample()
    found = score_natural(activations, there, threshold=1.0)
    guessed = activations > 1.0
    precision, recall = there[guessed].mean(), guessed[there].mean()
    assert found.r.value == pytest.approx(np.corrcoef(activations, there)[0, 1])
    assert found.auprc.value == pytest.approx(average_precision(activations, there))
    assert found.f1 == pytest.approx(2 * precision * recall / (precision + recall))
    assert (found.base_rate, found.n, found.missing) == (there.mean(), 1000, 0)
    for each in (found.r, found.auprc):
        assert each.low < each.value < each.high
        assert each.n == 1000


def test_the_interval_of_r_holds_the_truth_about_as_often_as_it_says() -> None:
    truth = np.corrcoef(*sample(400_000, 0.3, seed=99))[0, 1]
    held = 0
    for seed in range(200):
        r = score_natural(*sample(200, 0.3, seed), resamples=400).r
        held += r.low <= truth <= r.high
    assert held / 200 >= 0.89


def test_deciles_show_presence_rising_with_activation() -> None:
    deciles = score_natural(*sample(5000)).deciles
    assert [each.n for each in deciles] == [500] * 10
    assert deciles[0].present < deciles[5].present < deciles[9].present
    assert all(one.high <= two.low for one, two in pairwise(deciles))
    assert deciles[9].r > 0


def test_equal_activations_stay_in_one_decile() -> None:
    activations = np.array([0.0] * 80 + list(range(1, 21)))
    deciles = score_natural(activations, activations > 10).deciles
    assert [each.n for each in deciles] == [0, 0, 0, 0, 80, 0, 0, 0, 10, 10]
    assert deciles[0] == natural.Decile(None, None, 0, None, None)
    assert (deciles[9].low, deciles[9].high, deciles[9].present, deciles[9].r) == (11, 20, 1, None)


def test_missing_answers_are_left_out_and_counted() -> None:
    activations, there = sample(50, 0.5)
    answers = there.astype(float)
    answers[:5] = np.nan
    activations[7] = np.nan
    found = score_natural(activations, answers)
    kept = [k for k in range(5, 50) if k != 7]
    assert (found.n, found.missing) == (44, 6)
    assert found.r.value == score_natural(activations[kept], there[kept]).r.value


@pytest.mark.parametrize(
    ("activations", "presence", "reason"),
    [
        ([1.0, 1.0, 1.0], [1, 0, 1], "every image has the same activation, 1"),
        ([1.0, 2.0, 3.0], [0, 0, 0], "no image shows it"),
        ([1.0, 2.0, 3.0], [1, 1, 1], "every image shows it alike"),
        ([np.nan, np.nan], [1, 0], "no image has both"),
        ([], [], "no image has both"),
    ],
)
def test_what_cannot_be_had_says_why(activations: list, presence: list, reason: str) -> None:
    found = score_natural(activations, presence, threshold=0.5)
    assert found.r.value is None
    assert reason in found.r.why
    assert (found.auprc.value is None) == (sum(presence) == 0 or "no image has both" in reason)
    assert score_natural([1.0, 2.0], [0, 1]).f1 is None, "no threshold is known"


@pytest.mark.parametrize(("lit", "words"), [(19, "too few positives"), (81, "too few negatives")])
def test_too_few_of_either_kind_give_a_figure_without_an_interval(lit: int, words: str) -> None:
    activations = np.arange(100.0)
    found = score_natural(activations, activations >= 100 - lit)
    assert found.auprc.value == 1.0
    assert found.auprc.low is None
    assert found.auprc.why == f"{words} for an interval: 19 of 100 images, and it takes 20"
    assert score_natural(activations, activations >= 80).r.low is not None


def silent_unit(n: int, rate: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A unit that is silent but on some images, and a label of others: unrelated, and they hardly ever meet."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < rate, 3 + rng.normal(0, 1, n), 0.0), rng.random(n) < rate


def test_a_label_that_never_meets_its_unit_is_not_told_from_chance() -> None:
    for seed in range(20):
        activations, there = silent_unit(4_000, 0.008, seed)
        r = score_natural(activations, there, seed=seed, resamples=200)
        if not (activations[there] > 0).any():
            assert r.r.low <= 0 <= r.r.high
            assert r.p_value > 0.05


def test_the_test_of_no_correlation_alarms_as_seldom_as_it_says() -> None:
    p_values = [score_natural(*silent_unit(500, 0.1, seed), resamples=50).p_value for seed in range(400)]
    assert np.mean(np.array(p_values) <= 0.05) <= 0.09  # 20 of 400 expected: 36 come once in 1,000 times
    assert score_natural(*sample(), resamples=500).p_value == pytest.approx(0.001)


def test_a_perfect_label_of_few_images_may_still_miss_some() -> None:
    """Of 25 hits in 25 draws, no resample has a miss; the unit may answer to 9 in 10 all the same."""
    activations = np.where(np.arange(1_000) < 25, 3.0, 0.0)
    found = score_natural(activations, activations > 0)
    assert (found.r.value, found.auprc.value) == pytest.approx((1, 1))
    assert found.r.low < 0.94
    assert found.auprc.low < 0.9


@pytest.mark.parametrize(("positives", "n", "images"), [(50, 1_000, 1_000), (49, 1_000, 2_000), (9, 1_000, 6_000)])
def test_a_rare_label_takes_more_images(positives: int, n: int, images: int) -> None:
    assert plan_images(positives, n) == images


def test_a_label_that_no_image_shows_takes_as_many_as_one_that_one_shows() -> None:
    assert plan_images(0, 1_000) == 51_000
    assert plan_images(0, 60) == 4_000


def test_wrong_vectors_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(2,\).*\(1,\)"):
        score_natural([1, 2], [1])
    with pytest.raises(ValueError, match="Presence must lie"):
        score_natural([1, 2], [1, 2])
    with pytest.raises(ValueError, match="Weights must be 0 or more"):
        score_natural([1, 2], [1, 0], [-1, 1])


def test_weights_count_as_repeats_do() -> None:
    activations, there = sample(60, 0.4)
    weights = np.random.default_rng(1).integers(0, 4, 60)
    found, repeated = (
        score_natural(*each, threshold=1.0, resamples=10)
        for each in ((activations, there, weights), (np.repeat(activations, weights), np.repeat(there, weights)))
    )
    for name in ("r", "auprc"):
        assert getattr(found, name).value == pytest.approx(getattr(repeated, name).value)
    assert found.f1 == pytest.approx(repeated.f1)
    assert found.base_rate == pytest.approx(repeated.base_rate)


def test_surprises_are_the_images_that_speak_most_against_a_label() -> None:
    found = find_surprises([5, 4, 3, 2, 1, np.nan], [0, 1, 0.2, 0, 1, 1], count=2)
    assert found == natural.Surprises(bright=(0, 2), dark=(4, 1))


def test_scores_do_not_depend_on_the_scale_of_activations() -> None:
    activations, there = sample(300, 0.2)
    one, two = (score_natural(scale * activations + shift, there) for scale, shift in ((1, 0), (1e-6, 1e3)))
    assert one.r.value == pytest.approx(two.r.value, abs=1e-6)
    assert one.auprc == two.auprc
