"""Find units that are active where a class is seen: a cheap guess at a circuit, from the index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.metrics.ranking import STRONG


def find_lift(activations: NDArray[np.floating[Any]], shown: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return how much more often than by chance each unit is active where the class is seen: P(both) / P(one) P(other).

    Activations (images, units), `shown` (images,). A unit is active in the strongest twentieth of the images, as far as
    they rise above its median. 0 where unit or class is never there.
    """
    # The bound is the same share of images for each unit, so that scales do not matter
    ordered = np.sort(activations, axis=0)
    bound = ordered[-max(1, round(STRONG * len(activations)))]
    # A silent unit has its bound at its median, and is never active
    active = (activations >= bound) & (activations > np.median(activations, axis=0))
    chance = active.mean(0) * shown.mean()
    together = (active & shown[:, None]).mean(0)
    # Where chance is 0, unit or class never occurs
    return np.divide(together, chance, out=np.zeros(activations.shape[1]), where=chance > 0)


def rank_by_lift(units: Sequence[int], lift: NDArray[np.float64]) -> list[int]:
    """Return the units with the highest lift first; of equals the lower number."""
    return sorted((int(each) for each in units), key=lambda unit: (-lift[unit], unit))
