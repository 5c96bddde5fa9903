"""Train an auto-encoder on given activations, one step at a time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from workers.errors import MachineryError
from workers.record.sparse import TOPK
from workers.sparse.autoencoder import SparseAutoencoder
from workers.sparse.losses import auxiliary_loss, reconstruction_loss
from workers.sparse.recipe import TrainingPlan

_AUXILIARY = 1 / 32
_MAX_NORM = 1.0


class Learner:
    """A network under training with its optimiser, and the time that each latent has been silent."""

    def __init__(self, network: SparseAutoencoder, plan: TrainingPlan) -> None:
        self.network = network
        self.step = 0
        """Steps taken."""
        self._plan = plan
        self._optimizer = torch.optim.Adam(network.parameters(), betas=(0.9, 0.999))
        self._silent = torch.zeros(network.latents, dtype=torch.int64, device=network.decoder.device)
        """Positions since each latent was last active."""

    def learn(self, activations: Tensor) -> None:
        """Take one step on activations (positions, units) of variance 1. Raises MachineryError if the loss is not
        finite."""
        # 1. Encode, and measure the losses.
        network = self.network
        projected = network.project(activations)
        # Selection by the batch, as published; the threshold is for use after training.
        kept = network.keep_largest(projected)
        loss, residual = reconstruction_loss(network, activations, kept)
        # Small beside the first loss, as in the reference trainers.
        loss = loss + _AUXILIARY * auxiliary_loss(network, residual, projected, self._find_dead())
        # A loss that is not finite makes all weights NaN in the next step.
        if not loss.isfinite():
            raise MachineryError(
                f"The training broke at step {self.step:,}: its loss is {loss.item()} with {self.count_dead():.0%} of "
                "the latents dead. Train it again with another --seed, or with fewer latents."
            )
        # 2. Change the weights, but not the norms of the decoder's rows.
        self._optimizer.zero_grad()
        loss.backward()
        network.drop_parallel_gradient()
        nn.utils.clip_grad_norm_(network.parameters(), _MAX_NORM)
        for group in self._optimizer.param_groups:
            group["lr"] = self._plan.rate(self.step)
        self._optimizer.step()
        network.normalise_decoder()
        # Only after the warm-up, in which latents change too fast to be followed.
        if network.kind != TOPK and self.step >= self._plan.warm_up:
            network.measure_threshold(kept.detach(), self._plan.threshold_decay)
        # 3. Count how long each latent has been silent.
        self._silent += len(activations)
        # Active at one position of the batch is enough.
        self._silent[kept.detach().amax(0) > 0] = 0
        self.step += 1

    def count_dead(self) -> float:
        """Return the share of latents that were silent for the dead window."""
        return float(self._find_dead().float().mean())

    def _find_dead(self) -> Tensor:
        return self._silent > self._plan.dead_after

    def state(self) -> dict[str, Any]:
        """Return all that `restore` needs to continue with the next step."""
        return {
            "network": self.network.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "silent": self._silent,
            "step": self.step,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        self.network.load_state_dict(saved["network"])
        self._optimizer.load_state_dict(saved["optimizer"])
        self._silent.copy_(saved["silent"])
        self.step = int(saved["step"])
