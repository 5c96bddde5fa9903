"""Which images are asked about, and how many labels of a set say something of their own."""

from __future__ import annotations

import numpy as np
import pytest

from workers.metrics.natural import score_natural
from workers.metrics.strata import StratifiedSample, draw_strata
from workers.record.label_repeats import count_repeats

RNG = np.random.default_rng(4)
N = 2_000
THERE = (RNG.random(N) < 0.05).astype(float)
GUESS = np.where(RNG.random(N) < 0.03, 1 - THERE, THERE)
"""Right on most images."""
SPARSE = np.where((RNG.random(N) < 0.8) & (THERE > 0) | (RNG.random(N) < 0.03), RNG.normal(5, 1, N), 0.0)
"""Silent on most images, and dark on a fifth of those that the label describes."""


def count_kinds(drawn: StratifiedSample) -> tuple[int, int, int]:
    """Images that were drawn of each stratum: described, active though not described, others."""
    described = GUESS[drawn.positions] > 0
    bright = ~described & (SPARSE[drawn.positions] > 0)
    return int(described.sum()), int(bright.sum()), int((~described & ~bright).sum())


def test_each_stratum_gets_a_third_of_the_draws_or_all_that_it_has() -> None:
    bright = int(((GUESS < 0.5) & (SPARSE > 0)).sum())
    assert 50 < bright < 100
    assert count_kinds(draw_strata(SPARSE, GUESS, 90)) == (30, 30, 30)
    assert count_kinds(draw_strata(SPARSE, GUESS, 400)) == (
        min((400 - bright) // 2, int(GUESS.sum())),
        bright,
        400 - bright - min((400 - bright) // 2, int(GUESS.sum())),
    )


def test_an_image_comes_once_and_weighs_what_it_stands_for() -> None:
    drawn = draw_strata(SPARSE, GUESS, 180, seed=2)
    assert len(set(drawn.positions)) == 180
    assert drawn.weights.mean() == pytest.approx(1)
    described = GUESS[drawn.positions] > 0
    assert drawn.weights[described].sum() / 180 == pytest.approx(GUESS.mean())
    again = draw_strata(SPARSE, GUESS, 180, seed=2)
    assert (again.positions == drawn.positions).all()
    assert set(draw_strata(SPARSE, GUESS, 180, seed=3).positions) != set(drawn.positions)


def test_weights_bring_the_sample_back_to_all_images() -> None:
    whole = score_natural(SPARSE, THERE, resamples=0)
    samples = [draw_strata(SPARSE, GUESS, 180, seed=seed) for seed in range(300)]
    found = [
        score_natural(SPARSE[each.positions], THERE[each.positions], each.weights, resamples=0) for each in samples
    ]
    rates, figures = [each.base_rate for each in found], [each.r.value for each in found]
    assert np.mean(rates) == pytest.approx(whole.base_rate, abs=3 * np.std(rates) / np.sqrt(300))
    assert np.mean(figures) == pytest.approx(whole.r.value, abs=0.02)
    uniform = np.random.default_rng(1)
    plain = [uniform.choice(N, 180, replace=False) for _ in range(300)]
    spread = np.nanstd([score_natural(SPARSE[some], THERE[some], resamples=0).r.value or np.nan for some in plain])
    assert np.std(figures) < 0.6 * spread, "and they say more than a uniform sample"


@pytest.mark.parametrize("guess", [None, np.full(N, np.nan), np.zeros(N)])
def test_without_a_guess_half_of_the_draws_are_bright(guess: np.ndarray | None) -> None:
    activations = np.arange(float(N))
    drawn = draw_strata(activations, guess, 100)
    assert (drawn.positions >= N - 100).sum() == 50
    assert set(np.round(drawn.weights, 6)) == {0.1, 1.9}


def test_equal_activations_are_not_bright() -> None:
    drawn = draw_strata(np.zeros(N), None, 100)
    assert drawn.weights == pytest.approx(1)
    assert np.median(drawn.positions) == pytest.approx(N / 2, abs=N / 5)


def test_where_all_is_described_draws_are_uniform() -> None:
    drawn = draw_strata(np.arange(float(N)), np.ones(N), 100)
    assert drawn.weights == pytest.approx(1)


@pytest.mark.parametrize("n", [1, 2, 40, 180])
def test_of_few_images_all_are_drawn(n: int) -> None:
    drawn = draw_strata(SPARSE[:n], GUESS[:n], 180)
    assert sorted(drawn.positions) == list(range(n))
    assert drawn.weights == pytest.approx(1)


def test_an_image_without_an_answer_can_still_be_drawn() -> None:
    activations, guess = np.arange(50.0), np.ones(50)
    activations[3] = guess[3] = guess[4] = np.nan
    assert {3, 4} <= set(draw_strata(activations, guess, 49).positions)


def test_wrong_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="2 activations and 1 guesses"):
        draw_strata([1, 2], [1], 5)
    with pytest.raises(ValueError, match="at least one"):
        draw_strata([], None, 5)
    with pytest.raises(ValueError, match="3 strata"):
        draw_strata([1, 2], [1, 2], 2)


def test_labels_that_several_units_have_are_not_unique() -> None:
    found = count_repeats(["Red balls", "red  balls.", "dogs", "", "cats"])
    assert (found.labels, found.unique, found.distinct) == (4, 2, 3)
    assert found.repeated == (("red balls", 2),)
    assert count_repeats([]).labels == 0
