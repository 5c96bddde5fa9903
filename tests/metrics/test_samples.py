"""Which images are asked about, and how many labels of a set say something of their own."""

from __future__ import annotations

import numpy as np
import pytest

from workers.metrics.importance import sample_by_importance
from workers.metrics.uniqueness import measure_uniqueness


def test_draws_fall_where_activation_and_guess_are_unusual_together() -> None:
    activations, guess = np.zeros(1000), np.zeros(1000)
    activations[:10] = guess[:10] = 1.0
    drawn = sample_by_importance(activations, guess, 2000, seed=1)
    share = (drawn.positions < 10).mean()
    pull = np.abs((activations - 0.01) * (guess - 0.01))
    assert share == pytest.approx(0.8 * pull[:10].sum() / pull.sum() + 0.2 * 0.01, abs=0.03)
    assert drawn.weights.max() <= 1 / 0.2
    assert drawn.weights.mean() == pytest.approx(1, abs=0.15), "the weights bring the sample back to all images"
    again = sample_by_importance(activations, guess, 2000, seed=1)
    assert (again.positions == drawn.positions).all()


@pytest.mark.parametrize("guess", [np.full(50, 0.3), np.full(50, np.nan)])
def test_a_guess_that_says_nothing_gives_uniform_draws(guess: np.ndarray) -> None:
    drawn = sample_by_importance(np.arange(50.0), guess, 20)
    assert drawn.weights == pytest.approx(1)


def test_an_image_without_a_guess_can_still_be_drawn() -> None:
    guess = np.arange(50.0)
    guess[3] = np.nan
    drawn = sample_by_importance(np.arange(50.0), guess, 5000)
    assert 3 in drawn.positions


def test_wrong_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="2 activations and 1 guesses"):
        sample_by_importance([1, 2], [1], 5)
    with pytest.raises(ValueError, match="above 0"):
        sample_by_importance([1, 2], [1, 2], 5, uniform=0)


def test_labels_that_several_units_have_are_not_unique() -> None:
    found = measure_uniqueness(["Red balls", "red  balls.", "dogs", "", "cats"])
    assert found.share.value == 0.5
    assert (found.share.n, found.distinct) == (4, 3)
    assert found.repeated == (("red balls", 2),)
    assert measure_uniqueness([]).share.value is None
