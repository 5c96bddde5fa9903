"""Which images to ask about where every answer costs: those that decide the correlation.

From "Beyond Top Activations" (Oikarinen et al., CVPR 2026, 2506.07985): with a cheap guess at presence, images are
drawn by what they add to the correlation, mixed with uniform draws, and weighted back. `natural` takes the weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

UNIFORM = 0.2
"""The share of uniform draws, gamma of the paper, which bounds every weight by 1 / gamma."""

_NEAR = 1e-9
"""Spread, as a share of the largest value, up to which values are rounding errors of a constant."""


@dataclass(frozen=True)
class ImportanceSample:
    """Draws with replacement: an image may come twice, and is asked about once."""

    positions: NDArray[np.int64]
    """(count,)."""
    weights: NDArray[np.float64]
    """(count,): p/q, how much more often a uniform draw would have taken the image."""


def sample_by_importance(
    activations: ArrayLike, guess: ArrayLike, count: int, *, seed: int = 0, uniform: float = UNIFORM
) -> ImportanceSample:
    """Draw `count` of n images by q = (1 - gamma) |a c| / sum |a c| + gamma / n, with a and c standardised.

    `activations` (n,) and `guess` (n,), a cheap model's presence on any scale. Where the guess says nothing (constant,
    or NaN) draws are uniform. Raises ValueError for unequal or no lengths, or a share not in (0, 1].
    """
    acts, hint = (np.asarray(each, np.float64).reshape(-1) for each in (activations, guess))
    if len(acts) != len(hint) or not len(acts):
        raise ValueError(
            f"{len(acts)} activations and {len(hint)} guesses: give both for the same images, at least one."
        )
    if not 0 < uniform <= 1:
        raise ValueError(f"The share of uniform draws is {uniform}: it must be above 0, so that no image is shut out.")
    pull = np.nan_to_num(np.abs(_standardise(acts) * _standardise(hint)))
    total = pull.sum()
    chances = np.full(len(acts), 1 / len(acts))
    if total > 0:
        chances = (1 - uniform) * pull / total + uniform / len(acts)
    drawn = np.random.default_rng(seed).choice(len(acts), count, p=chances / chances.sum())
    return ImportanceSample(drawn.astype(np.int64), 1 / (len(acts) * chances[drawn]))


def _standardise(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Over the finite ones; zeros for a constant or where nothing is finite."""
    there = values[np.isfinite(values)]
    spread = there.std() if len(there) else 0.0
    constant = spread <= _NEAR * float(np.abs(there).max(initial=0.0))
    return np.zeros_like(values) if constant else (values - there.mean()) / spread
