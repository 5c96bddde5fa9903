"""Choose images for expensive judges: strata of described, bright and other images.

Answers are weighted back (Cochran, Sampling Techniques, 1977, chapter 5). `natural` uses the weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workers.metrics.natural import PRESENT

MIN_BRIGHT, MIN_BRIGHT_SHARE = 50, 0.05
"""Minimum size of the bright stratum, as a number and as a share of all images, if as many are above the lowest
activation."""
_DESCRIBED, _BRIGHT, _REST = range(3)


@dataclass(frozen=True)
class StratifiedSample:
    """Images drawn without replacement, ordered by stratum: described, bright, rest."""

    positions: NDArray[np.int64]
    """(drawn,), without repeats."""
    weights: NDArray[np.float64]
    """(drawn,), with mean 1, in proportion to how many images of its stratum each stands for."""


def draw_strata(activations: ArrayLike, guess: ArrayLike | None, count: int, *, seed: int = 0) -> StratifiedSample:
    """Draw `count` of n images, or all n if there are no more.

    `activations` (n,). `guess` (n,) is a cheap judge's presence in [0, 1], NaN if unknown; without it no image
    counts as described. Strata get equal shares, and the others use what a small one cannot. Raises ValueError for
    unequal or no lengths, and for fewer draws than strata.
    """
    acts = np.asarray(activations, np.float64).reshape(-1)
    said = np.full(len(acts), np.nan) if guess is None else np.asarray(guess, np.float64).reshape(-1)
    if len(acts) != len(said) or not len(acts):
        raise ValueError(
            f"{len(acts)} activations and {len(said)} guesses: give both for the same images, at least one."
        )
    if count <= _REST:
        raise ValueError(f"{count} draws: there are 3 strata, and each needs one.")
    # Few images decide correlation and average precision, and a uniform sample contains few of them.
    strata = _split(acts, said >= PRESENT)
    # Empty strata count too.
    sizes = np.bincount(strata, minlength=_REST + 1)
    quotas = _share_out(sizes, count)
    rng = np.random.default_rng(seed)
    drawn = np.concatenate(
        [rng.choice(np.flatnonzero(strata == each), quota, replace=False) for each, quota in enumerate(quotas)]
    )
    # The inverse of each stratum's sampling rate.
    weights = np.repeat(sizes / np.maximum(quotas, 1), quotas)
    return StratifiedSample(drawn.astype(np.int64), weights / weights.mean())


def _split(activations: NDArray[np.float64], described: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the stratum of each image, (n,). Bright are as many as are described."""
    strata = np.where(described, _DESCRIBED, _REST)
    wanted = max(int(described.sum()), MIN_BRIGHT, round(MIN_BRIGHT_SHARE * len(activations)))
    others = np.flatnonzero(~described)
    brightest = others[np.argsort(-activations[others], kind="stable")[:wanted]]
    # Most units are silent on most images: of equal ones at the lowest activation none is brighter than the rest
    strata[brightest[activations[brightest] > np.nanmin(activations)]] = _BRIGHT
    return strata


def _share_out(sizes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the number of images drawn from each stratum, (strata,)."""
    # Stable: of strata of one size the first is served first.
    quotas, order = np.zeros_like(sizes), np.argsort(sizes, kind="stable")
    for place, stratum in enumerate(order):
        # The smallest first: the others share what it cannot use.
        quotas[stratum] = min(sizes[stratum], (count - quotas.sum()) // (len(order) - place))
    return quotas
