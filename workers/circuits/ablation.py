"""Measure the logit of a class while units of a layer are held at their means, and what each of them adds to it.

A unit held at its mean says nothing of the image (mean ablation; Marks et al., arXiv 2403.19647).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image
from torch import Tensor

from workers.causal.rewrites import scale_units
from workers.protocols import Progress, RewritableModel

Floats = NDArray[np.float64]
STEPS = 10
"""Steps of integrated gradients."""


class AblatedLogit:
    """The logit of one class of a model over some images, with its own units or latents at one layer."""

    def __init__(
        self, model: RewritableModel, layer: str, target: int, images: Sequence[Image], means: Sequence[float]
    ) -> None:
        self._model = model
        self._layer = layer
        self._target = target
        self._images = images
        self._means = means

    def measure(self, held: Sequence[int]) -> float:
        """Return the mean logit over the images while these units are held at their means."""
        rewrite = scale_units(held, 0.0, [self._means[unit] for unit in held]) if len(held) else None
        found = self._model.outputs(self._images, self._layer, rewrite)[:, self._target]
        # Double precision: effects are small differences of large sums
        return float(found.double().mean())

    def read_gradient(self, share: float) -> Floats:
        """Return what the logit gains by each unit (units,) on the way from its mean to its own activation, by the
        gradient at this share of the way: summed over places, the mean over images."""
        ways: list[Tensor] = []
        points: list[Tensor] = []

        def move(maps: Tensor) -> Tensor:
            means = torch.as_tensor(self._means, dtype=maps.dtype, device=maps.device)[:, None, None]
            # Detached: the way itself is not differentiated
            ways.append((maps - means).detach())
            points.append((means + share * ways[-1]).requires_grad_())
            return points[-1]

        found = self._model.outputs(self._images, self._layer, move, gradients=True)[:, self._target].sum()
        # One gradient for each batch that the model made
        gained = zip(ways, torch.autograd.grad(found, points), strict=True)
        summed = sum((way * gradient).double().sum((0, 2, 3)).cpu() for way, gradient in gained)
        return np.asarray(summed) / len(self._images)


def find_effects(logit: AblatedLogit, units: Sequence[int], what: str, progress: Progress) -> Floats:
    """Return how much the logit falls when each of these units alone is held at its mean: exact, a pass for each."""
    whole = logit.measure([])
    found = np.zeros(len(units))
    for at, unit in enumerate(units):
        progress(what, at, len(units))
        found[at] = whole - logit.measure([unit])
    return found


def integrate_gradients(logit: AblatedLogit, what: str, progress: Progress) -> Floats:
    """Return the same for all units (units,) at once, to first order, by integrated gradients.

    Gradients along the way from the means to the units' own activations, times that way (Sundararajan et al., ICML
    2017), in `STEPS` steps as sparse feature circuits do.
    """
    total: Floats = np.zeros(0)
    for step in range(STEPS):
        progress(what, step, STEPS)
        # In the middle of each step, which is exact for a straight line.
        found = logit.read_gradient((step + 0.5) / STEPS)
        total = found if not step else total + found
    return total / STEPS


def rank_by_effect(units: Sequence[int], effects: Floats) -> list[int]:
    """Rank the units by their effect, in either direction; of equals the lower number first."""
    # Stable, so that equal effects keep the order of the units
    return [int(units[at]) for at in np.argsort(-np.abs(effects), kind="stable")]
