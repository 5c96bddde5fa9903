"""The images of detection: those that activate a unit, by tenth of activation, and others; with shares over them.

An image activates a unit if its activation is above the unit's mask threshold; `detection` says why. Used by
`detection`, `hard_negatives` and `fuzzing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workers.metrics.intervals import estimate_share
from workers.metrics.natural import PRESENT
from workers.record.estimates import Estimate

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

TENTHS = 10
IMAGES_A_TENTH, OTHERS = 10, 50
"""Maximum number of images drawn from each tenth of the activating ones, and from the others."""
MIN_IMAGES = 20
"""Minimum number of activating images, and of others: two for each tenth."""


@dataclass(frozen=True)
class Side:
    """Images that all activate the unit, or all do not, (n,): the judge's answers, NaN if unreadable, and weights."""

    presence: Floats
    weights: Floats

    @property
    def said_yes(self) -> float:
        """Share of images that the label describes. An unreadable answer is not a yes."""
        return float(np.average(self.presence >= PRESENT, weights=self.weights))

    @property
    def said_no(self) -> float:
        return float(np.average(self.presence < PRESENT, weights=self.weights))

    @property
    def failed(self) -> float:
        return float(np.average(np.isnan(self.presence), weights=self.weights))

    @property
    def unread(self) -> int:
        return int(np.isnan(self.presence).sum())

    def estimate(self, share: float) -> Estimate:
        """Return the share with Wilson's interval."""
        # The effective number of images: unequal weights tell less than equal ones (Kish 1965).
        # The small number undoes rounding: equal weights must give exactly n.
        n = max(1, int(self.weights.sum() ** 2 / (self.weights**2).sum() + 1e-9))
        return replace(estimate_share(share * n, n), n=len(self.presence))


def read_vectors(
    activations: ArrayLike, presence: ArrayLike, weights: ArrayLike | None
) -> tuple[Floats, Floats, Floats, Places]:
    """Return activations, answers, weights and positions of the judged images with an activation.

    Raises ValueError for unequal lengths.
    """
    acts, said = (np.asarray(each, np.float64).reshape(-1) for each in (activations, presence))
    heavy = np.ones_like(acts) if weights is None else np.asarray(weights, np.float64).reshape(-1)
    if not len(acts) == len(said) == len(heavy):
        raise ValueError(
            f"{len(acts)} activations, {len(said)} answers, {len(heavy)} weights: give all for each image."
        )
    # Images without an answer stay: an unreadable answer counts against the label.
    kept = np.flatnonzero(np.isfinite(acts) & (heavy > 0))
    return acts[kept], said[kept], heavy[kept], kept


def split_images(
    acts: Floats, weights: Floats, threshold: float, rng: np.random.Generator
) -> tuple[list[Places], Places]:
    """Return the activating images in ten parts of equal weight, lowest first, and the others."""
    # Shuffled first and sorted stably, so that ties are broken at random.
    shuffled = rng.permutation(len(acts))
    ordered = shuffled[np.argsort(acts[shuffled], kind="stable")]
    is_active = acts[ordered] > threshold
    active = ordered[is_active]
    # By the middle of each image's weight, so that a heavy image falls into the tenth that holds most of it.
    middle = np.cumsum(weights[active]) - weights[active] / 2
    part = np.minimum((TENTHS * middle / max(weights[active].sum(), 1e-300)).astype(int), TENTHS - 1)
    # Sorted, so that later draws depend on the seed alone.
    return [active[part == each] for each in range(TENTHS)], np.sort(ordered[~is_active])


def draw_images(
    tenths: Sequence[Places], weights: Floats, others: Places, rng: np.random.Generator
) -> tuple[list[Places], Floats, Places]:
    """Draw images from each part, with weights by which every activating image counts equally."""
    drawn = [rng.permutation(each)[:IMAGES_A_TENTH] for each in tenths]
    heavy = weights.copy()
    for every, some in zip(tenths, drawn, strict=True):
        # Each drawn image stands for those of its part that were not drawn.
        heavy[some] *= len(every) / max(len(some), 1)
    return drawn, heavy, rng.permutation(others)[:OTHERS]


def explain_few(active: int, others: int) -> str:
    """Return why nothing is measured; "" if there are enough images."""
    for count, words in ((active, "activate the unit"), (others, "do not activate the unit")):
        if count < MIN_IMAGES:
            return f"{count} images {words}, and it takes {MIN_IMAGES}"
    return ""


def join_sides(sides: Sequence[Side]) -> Side:
    return Side(np.concatenate([each.presence for each in sides]), np.concatenate([each.weights for each in sides]))


def average_shares(one: Estimate, two: Estimate) -> Estimate:
    """Return the mean of two independent shares with an interval from theirs (Zou and Donner 2008, "MOVER")."""
    assert one.value is not None
    assert two.value is not None
    value = (one.value + two.value) / 2
    # Down: the lower ends of both shares; up: the upper ends.
    down, up = (
        0.5 * float(np.hypot(one.value - (a or 0.0), two.value - (b or 0.0)))
        for a, b in ((one.low, two.low), (one.high, two.high))
    )
    return Estimate(value, value - down, value + up, one.n + two.n)


def find_area(bright: Side, dark: Side) -> float:
    """Return the probability that the label fits an activating image better than another one.

    A tie counts half, an unreadable answer loses. For yes/no answers this is the balanced accuracy.
    """
    # A tie counts half; an unreadable answer loses on either side.
    high = np.where(np.isnan(bright.presence), -1.0, bright.presence)[:, None]
    low = np.where(np.isnan(dark.presence), 2.0, dark.presence)[None]
    wins = (high > low) + 0.5 * (high == low)
    return float(bright.weights @ wins @ dark.weights / (bright.weights.sum() * dark.weights.sum()))
