"""The training losses: reconstruction error, and what dead latents could have added.

Activations are divided by a scale so that their variance, summed over units, is 1: the first loss is then the fraction
of variance that is not explained.
"""

from __future__ import annotations

import torch
from torch import Tensor

from workers.sparse.autoencoder import SparseAutoencoder


def reconstruction_loss(network: SparseAutoencoder, activations: Tensor, latents: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean squared distance, averaged over nested groups if there are some; and the residual of all
    latents."""
    losses, residual = [], activations
    for rebuilt in network.decode_nested(latents):
        residual = activations - rebuilt
        losses.append(residual.square().sum(1).mean())
    return torch.stack(losses).mean(), residual.detach()


def auxiliary_loss(network: SparseAutoencoder, residual: Tensor, projected: Tensor, dead: Tensor) -> Tensor:
    """Return the error of the largest dead latents in rebuilding the residual, as a share of its variance; 0 without
    them.

    `projected` are the latents (positions, latents) as `SparseAutoencoder.project` gives them, `dead` says which count.
    """
    # This gives latents that are never kept a gradient (Gao et al., appendix A.2).
    found = dead.nonzero().flatten()
    variance = (residual - residual.mean(0)).square().sum(1).mean() if len(found) else residual.new_zeros(())
    # Nothing is left to explain: a division by 0 would make every weight NaN
    if not variance > torch.finfo(variance.dtype).tiny:
        return residual.new_zeros(())
    # Negative values count too: a latent that is negative everywhere would get no gradient through a ReLU
    # Half of the units, as Gao et al. choose.
    values, chosen = projected[:, found], max(1, residual.shape[1] // 2)
    if chosen < len(found):
        best = values.topk(chosen, dim=1, sorted=False)
        values = torch.zeros_like(values).scatter_(1, best.indices, best.values)
    return (residual - values @ network.decoder[found]).square().sum(1).mean() / variance


def total_variance(activations: Tensor) -> float:
    """Return the variance of activations (positions, units), summed over units."""
    # In float64, since sums of many squares lose digits.
    return float(activations.double().var(0, correction=0).sum())
