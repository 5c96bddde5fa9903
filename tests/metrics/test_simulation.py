"""Simulation: the activation that a label lets expect, fitted on one half of the images and scored on the other."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.support.sanity import make_units, share_falling
from workers.metrics.natural import score_natural
from workers.metrics.simulation import explain_variance, score_simulation
from workers.record.other_tests import SimulationResult


def sample(n: int = 2_000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A unit that answers to how much of something there is, with noise."""
    rng = np.random.default_rng(seed)
    there = np.where(rng.random(n) < 0.4, rng.random(n), 0.0)
    return 4 * there + 3 + rng.normal(0, 0.5, n), there


def test_a_label_that_predicts_how_strong_the_response_is_explains_its_variance() -> None:
    acts, there = sample()
    found = score_simulation(acts, there)
    spread = np.var(4 * there)
    for each, truth in ((found.explained_variance, spread / (spread + 0.25)), (found.correlation, None)):
        assert each.value is not None
        assert each.low is not None
        assert each.high is not None
        assert each.low < each.value < each.high
        assert truth is None or each.low < truth < each.high
    assert (found.fitted, found.correlation.n, found.graded) == (1_000, 1_000, True)


def test_yes_or_no_gives_r_again_and_about_its_square() -> None:
    acts, there = sample()
    found, r = score_simulation(acts, there > 0.5), score_natural(acts, there > 0.5).r.value
    assert not found.graded
    assert found.correlation.value == pytest.approx(r, abs=0.05)
    assert found.correlation.value is not None
    assert found.explained_variance.value == pytest.approx(found.correlation.value**2, abs=0.02)


def test_a_label_that_is_turned_round_predicts_nothing() -> None:
    acts, there = sample()
    found = score_simulation(acts, 1 - there)
    assert found.correlation.value is not None
    assert found.correlation.value < -0.5
    assert found.explained_variance.value == pytest.approx(0, abs=0.01)


def test_explained_variance_is_that_of_the_textbook() -> None:
    acts, guess = np.array([1.0, 2, 3, 6]), np.array([1.0, 2, 4, 5])
    assert explain_variance(acts, guess, np.ones((1, 4)))[0] == pytest.approx(1 - 0.5 / np.var(acts))
    weights, repeated = np.array([[1.0, 2, 1, 3]]), [0, 1, 1, 2, 3, 3, 3]
    plain = explain_variance(acts[repeated], guess[repeated], np.ones((1, 7)))
    assert explain_variance(acts, guess, weights) == pytest.approx(plain)


@pytest.mark.parametrize(
    ("acts", "said", "words"),
    [
        (np.arange(19.0), np.zeros(19), "19 images have an answer"),
        (np.arange(40.0), np.full(40, np.nan), "0 images have an answer"),
        (np.ones(40), np.arange(40) % 2, "the same on every image"),
    ],
)
def test_what_cannot_be_had_says_why(acts: np.ndarray, said: np.ndarray, words: str) -> None:
    found = score_simulation(acts, said)
    for each in (found.correlation, found.explained_variance):
        assert each.value is None
        assert words in each.why


def test_a_label_that_no_image_shows_explains_nothing() -> None:
    found = score_simulation(np.arange(40.0), np.zeros(40))
    assert found.correlation.value is None
    assert found.explained_variance.value is not None
    assert found.explained_variance.value <= 0
    assert "takes 20" in found.explained_variance.why


def test_unread_answers_and_images_not_asked_about_are_left_out() -> None:
    acts, there = sample(400)
    weights = np.where(np.arange(400) < 100, 0.0, 1.0)
    there[100:150] = np.nan
    found = score_simulation(acts, there, weights, resamples=0)
    assert found.fitted + found.correlation.n == 250
    assert msgspec.json.decode(msgspec.json.encode(found), type=SimulationResult) == found
    with pytest.raises(ValueError, match="2 activations, 1 answers"):
        score_simulation([1, 2], [1])


@pytest.mark.parametrize("frequency", [0.1, 0.01, 0.004])
def test_explained_variance_falls_for_labels_that_are_too_narrow_or_too_broad(frequency: float) -> None:
    assert min(share_falling("explained variance, simulation", make_units(60, frequency, seed=12))) > 0.9
