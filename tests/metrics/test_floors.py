"""How far a label is above its floors: figures under many weights, and intervals that hold 0 for a floor."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from workers.metrics.floors import MIN_FLOORS, Answered, FloorScores, score_floors
from workers.metrics.natural import score_natural

N, TRIALS = 400, 60


def draw(rng: np.random.Generator, activations: NDArray[np.float64], pull: float, base: float = 0.2) -> Answered:
    """A label that goes with the activations as far as `pull` says, of a fifth of the images."""
    noisy = pull * activations + rng.normal(size=len(activations))
    return Answered(activations, (noisy > np.quantile(noisy, 1 - base)).astype(np.float64))


def score(
    label: Answered, floors: list[Answered], seed: int, weights: NDArray[np.float64] | None = None
) -> FloorScores:
    own = score_natural(label.activations, label.presence, weights, seed=seed, resamples=100)
    return score_floors(label, floors, weights, own.r, own.auprc, seed=seed, resamples=100)


def test_each_floor_scores_as_a_label_does_by_itself() -> None:
    rng = np.random.default_rng(3)
    activations, weights = rng.normal(size=N).round(1), rng.random(N)
    unread = draw(rng, activations, 0.4)
    unread.presence[:50] = np.nan
    soft = Answered(activations, rng.random(N))
    silent = Answered(np.zeros(N), unread.presence)
    found = score(draw(rng, activations, 2), [unread, soft, silent], 0, weights)
    for floor, (r, area) in zip((unread, soft, silent), found.each, strict=True):
        alone = score_natural(floor.activations, floor.presence, weights, resamples=0)
        assert r == pytest.approx(alone.r.value)
        assert area == pytest.approx(alone.auprc.value)
    assert found.each[2][0] is None
    assert found.pearson.mean == pytest.approx(np.mean([found.each[0][0], found.each[1][0]]))
    assert (found.pearson.least, found.pearson.most) == (
        pytest.approx(min(found.each[0][0] or 0, found.each[1][0] or 0)),
        pytest.approx(max(found.each[0][0] or 0, found.each[1][0] or 0)),
    )


@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_a_floors_own_difference_holds_0_as_often_as_it_says(spread: float) -> None:
    """Both where floors differ by chance alone, and where they differ in truth. Seeds are fixed: it cannot flake."""
    held = {"pearson": 0, "auprc": 0}
    for seed in range(TRIALS):
        rng = np.random.default_rng([5, seed])
        activations = rng.normal(size=N)
        labels = [draw(rng, activations, rng.normal() * spread) for _ in range(11)]
        found = score(labels[0], labels[1:], seed)
        for name in held:
            above = getattr(found, name).above
            held[name] += above.low <= 0 <= above.high
    for hits in held.values():
        assert hits / TRIALS >= 0.9
    assert held["pearson"] / TRIALS <= 0.99


def test_a_right_label_is_above_its_floors_and_a_turned_one_below() -> None:
    rng = np.random.default_rng(1)
    activations = rng.normal(size=N)
    floors = [draw(rng, activations, rng.normal() * 0.1) for _ in range(10)]
    right, turned = (score(draw(rng, activations, pull), floors, 1).pearson for pull in (2.0, -2.0))
    assert right.above.low is not None
    assert turned.above.high is not None
    assert right.above.low > 0.3
    assert turned.above.high < -0.3
    assert right.mean == pytest.approx(turned.mean)
    assert right.sd is not None
    assert right.sd > 0


def test_more_varied_floors_give_a_wider_interval() -> None:
    rng = np.random.default_rng(2)
    activations = rng.normal(size=N)
    label = draw(rng, activations, 2)
    widths = []
    for spread in (0.0, 1.0):
        above = score(label, [draw(rng, activations, rng.normal() * spread) for _ in range(10)], 2).pearson.above
        assert above.low is not None
        assert above.high is not None
        widths.append(above.high - above.low)
    assert widths[1] > 2 * widths[0]


def test_too_few_floors_or_positives_give_no_interval() -> None:
    rng = np.random.default_rng(4)
    activations = rng.normal(size=N)
    label, floors = draw(rng, activations, 2), [draw(rng, activations, 0) for _ in range(MIN_FLOORS)]
    assert score(label, floors, 0).pearson.above.low is not None
    two = score(label, floors[:2], 0).pearson
    assert (two.above.low, two.sd is None) == (None, False)
    assert "too few floors" in two.above.why
    one = score(label, floors[:1], 0).pearson
    assert (one.sd, one.above.value is None, one.least) == (None, False, one.most)
    rare = score(draw(rng, activations, 2, base=0.01), floors, 0).pearson.above
    assert rare.low is None
    assert "too few positives" in rare.why
    nothing = score(label, [Answered(activations, np.zeros(N))], 0)
    assert (nothing.each, nothing.pearson.mean, nothing.pearson.above.value) == (((None, None),), None, None)


def test_floors_of_other_images_are_refused() -> None:
    label = draw(np.random.default_rng(0), np.arange(N, dtype=np.float64), 1)
    with pytest.raises(ValueError, match="same images"):
        score(label, [Answered(label.activations[1:], label.presence[1:])], 0)
