"""Measure how well latents rebuild activations of held-out images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.protocols import Progress, no_progress
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
    """Share of latents that training had not seen active for its dead window at its end; of an auto-encoder that others
    trained, the share that is active at none of the positions."""
    positions: int


@dataclass(frozen=True)
class Reconstruction:
    """How activations were rebuilt, and by how many latents."""

    unexplained: float
    """As in `Quality`."""
    at_positions: NDArray[np.int64]
    """(positions,): latents that are active at each: those that are not 0."""
    of_latents: NDArray[np.int64]
    """(latents,): positions at which each is active."""


def measure_quality(network: SparseAutoencoder, activations: Tensor, dead: float) -> Quality:
    """Measure on activations (positions, units) on the CPU; the network may be on another device."""
    found = measure_reconstruction(network, activations)
    return Quality(found.unexplained, float(found.at_positions.mean()), dead, len(activations))


@torch.no_grad()
def measure_reconstruction(
    network: SparseAutoencoder, activations: Tensor, progress: Progress = no_progress
) -> Reconstruction:
    """Measure on activations (positions, units) on the CPU; the network may be on another device."""
    # In float64, since a mean over many positions loses digits.
    mean = activations.mean(0, dtype=torch.float64)
    errors = distances = 0.0
    at_positions, of_latents = [], torch.zeros(network.latents, dtype=torch.int64)
    for number, batch in enumerate(activations.split(_AT_ONCE)):
        progress("Rebuilding activations", number * _AT_ONCE, len(activations))
        latents, rebuilt = network.reconstruct(batch.to(network.decoder.device))
        rebuilt = rebuilt.cpu()
        errors += float((batch - rebuilt).double().square().sum())
        # The variance is that around one mean of all positions.
        distances += float((batch - mean).square().sum())
        active = latents != 0
        at_positions.append(active.sum(1).cpu())
        of_latents += active.sum(0).cpu()
    # Of constant activations nothing can be explained.
    unexplained = errors / distances if distances else 1.0
    return Reconstruction(unexplained, torch.cat(at_positions).numpy(), of_latents.numpy())
