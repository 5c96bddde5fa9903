"""Change units of a layer: multiply their distance from a reference by a factor.

    x' = x + (factor - 1) * sum over the set of (x_u - reference_u) * d_u

d_u is the direction in which unit u writes: its own axis, so that x'_u = reference_u + factor * (x_u - reference_u).
For a latent z_j of a sparse auto-encoder it is the row of the decoder,

    x' = x + (factor - 1) * sum over the set of (z_j - reference_j) * W_dec[j]

so that what the auto-encoder does not explain stays in x (see `SparseAutoencoder.rewrite_maps`). With the reference 0,
factor 0 takes the unit out (ablation); with its mean, it takes out what the unit tells of the image.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from workers.protocols import Rewrite


def scale_units(units: Sequence[int], factor: float, references: Sequence[float]) -> Rewrite:
    """Return a rewrite of maps (batch, units, height, width) by the formula above; factor 1 changes no bit."""

    def rewrite(maps: Tensor) -> Tensor:
        chosen = torch.as_tensor(units, device=maps.device)
        # Shaped (units, 1, 1), to be broadcast over places
        reference = torch.as_tensor(references, dtype=maps.dtype, device=maps.device)[:, None, None]
        before = maps[:, chosen]
        # The network may use its own tensor elsewhere
        changed = maps.clone()
        changed[:, chosen] = before + (factor - 1) * (before - reference)
        return changed

    return rewrite


class PlaceMeans:
    """The mean of each unit over all places of all images, collected by `read`, a rewrite that changes nothing."""

    def __init__(self) -> None:
        self._sum: Tensor | float = 0.0
        self._count = 0

    def read(self, maps: Tensor) -> Tensor:
        batch, _, height, width = maps.shape
        # Double precision: sums over millions of places
        self._sum = self._sum + maps.sum((0, 2, 3), dtype=torch.float64).cpu()
        self._count += batch * height * width
        return maps

    def find(self, units: Sequence[int]) -> list[float]:
        """Return the means of these units; 0 if no image was read."""
        if not isinstance(self._sum, Tensor):
            return [0.0] * len(units)
        return [float(each) for each in self._sum[list(units)] / self._count]
