"""Analyse activations before anything is changed: constant units, the images that activate a set most, and control
units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

DRAWS = 5
"""Draws of control units."""
_TOP_SHARE = 0.1


@dataclass(frozen=True)
class UnitActivity:
    """Of a set of units among images."""

    constant: tuple[int, ...]
    """Units of the set with the same activation for all images."""
    is_dead: bool
    """True if all units of the set are 0 for all images."""
    active_images: int
    top: NDArray[np.bool_]
    """(images,): the tenth that activates the set most, at least one."""
    live_others: NDArray[np.int64]
    """Units outside the set whose activation varies among the images."""


def find_activity(activations: NDArray[np.floating[Any]], units: Sequence[int]) -> UnitActivity:
    """Compute the activity from activations (images, units) of all units of the layer, of at least one image.

    The activity of a set is the sum of its units' activations, each divided by its standard deviation.
    """
    # Sums and deviations in double precision
    chosen = activations[:, list(units)].astype(np.float64)
    varies = np.ptp(activations, axis=0) > 0
    strength = sum_activity(chosen)
    top = np.zeros(len(chosen), bool)
    top[np.argsort(-strength, kind="stable")[: max(1, round(_TOP_SHARE * len(chosen)))]] = True
    return UnitActivity(
        constant=tuple(unit for unit in units if not varies[unit]),
        is_dead=not chosen.any(),
        active_images=int((chosen > 0).any(axis=1).sum()),
        top=top,
        # Dead units as controls would make any effect look large
        live_others=np.setdiff1d(np.flatnonzero(varies), units),
    )


def sum_activity(chosen: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the activity of a set (images,): the sum of its units' activations (images, units), each over its
    deviation."""
    spread = chosen.std(axis=0)
    # A constant unit has no deviation to be divided by
    total: NDArray[np.float64] = (chosen / np.where(spread > 0, spread, 1)).sum(axis=1)
    return total


def draw_controls(others: NDArray[np.int64], size: int, seed: int) -> list[list[int]]:
    """Draw several times `size` of these units, ascending; disjoint if there are enough. Returns None if there are too
    few.
    """
    if size > len(others):
        return []
    rng = np.random.default_rng(seed)
    # Disjoint draws are independent; else each draw alone has no repetition
    if size * DRAWS <= len(others):
        drawn = list(rng.permutation(others)[: size * DRAWS].reshape(DRAWS, size))
    else:
        drawn = [rng.choice(others, size, replace=False) for _ in range(DRAWS)]
    return [sorted(int(unit) for unit in each) for each in drawn]
