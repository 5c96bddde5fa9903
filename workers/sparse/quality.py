"""How well latents rebuild activations that training never saw."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from workers.sparse.autoencoder import SparseAutoencoder

_AT_ONCE = 4096


@dataclass(frozen=True)
class Quality:
    """Measured on positions of held-out images."""

    unexplained: float
    """Fraction of variance unexplained: 0 is perfect, the mean of all activations has 1."""
    active: float
    """Latents that are active at a position, on average: L0."""
    dead: float
    """Share of latents that training had not seen active for its dead window at its end."""
    positions: int


@torch.no_grad()
def measure_quality(network: SparseAutoencoder, activations: Tensor, dead: float) -> Quality:
    """Of activations (positions, units) on the CPU; the network may lie elsewhere.

    The variance is that around one mean of all positions: squared errors over squared distances from it.
    """
    mean = activations.double().mean(0)
    errors = distances = active = 0.0
    for batch in activations.split(_AT_ONCE):
        latents = network.encode(batch.to(network.decoder.device))
        rebuilt = network.decode(latents).cpu()
        errors += float((batch - rebuilt).double().square().sum())
        distances += float((batch - mean).square().sum())
        active += float((latents > 0).sum())
    count = len(activations)
    return Quality(errors / distances if distances else 1.0, active / count, dead, count)
