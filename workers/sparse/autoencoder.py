"""Sparse auto-encoders: activations (positions, units) become few latents, and these become activations again.

- "topk": the k largest latents of each position (Gao et al., arXiv 2406.04093).
- "batchtopk": the k x positions largest of a batch in training; afterwards all above a threshold that training measured
  (Bussmann et al., arXiv 2412.06410).
- "matryoshka": the same, but the first 1/16, 1/8, 1/4 and 1/2 of the latents must rebuild the input by themselves too,
  so the first ones learn what is general (Bussmann et al., arXiv 2503.17547).

Published auto-encoders have two more kinds, which are not trained here: "relu" keeps all positive latents, "jumprelu"
those above a threshold for each latent. Some of them normalise each position first.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from workers.protocols import Rewrite
from workers.record.sparse import JUMPRELU, MATRYOSHKA, TOPK

_NESTED = (16, 8, 4, 2)
"""Matryoshka: the latents divided by these are the sizes of the inner groups."""
_MEDIAN_ROUNDS = 20
UNCHANGED, LAYER_NORM, CONSTANT_NORM = NORMALISATIONS = ("none", "layer_norm", "constant_norm_rescale")
"""What is done to each position before it is encoded, by the names of SAELens."""
_LAYER_NORM_EPSILON = 1e-5
_AT_ONCE = 4096
"""Positions of maps that are encoded at a time."""


class SparseAutoencoder(nn.Module):
    """Encoder rows and decoder rows are (latents, units); decoder rows have norm 1 if they were trained here.

    `k` counts for the kind "topk" alone. `signed`: of the k largest latents negative ones are kept as they are.
    """

    threshold: Tensor
    """Of a latent's activation: (latents,) for the kind "jumprelu", else one for all; 0 until training measured it."""

    def __init__(
        self,
        units: int,
        latents: int,
        k: int,
        kind: str,
        seed: int = 0,
        *,
        normalisation: str = UNCHANGED,
        signed: bool = False,
    ) -> None:
        super().__init__()
        self.k = k
        self.kind = kind
        self.normalisation = normalisation
        self.signed = signed
        # On the CPU, so that the seed gives the same start on every device.
        start = torch.randn(latents, units, generator=torch.Generator().manual_seed(seed))
        self.decoder = nn.Parameter(nn.functional.normalize(start))
        # A copy: with shared storage a step of the encoder would move the decoder too
        self.encoder = nn.Parameter(self.decoder.detach().clone())
        self.encoder_bias = nn.Parameter(torch.zeros(latents))
        self.decoder_bias = nn.Parameter(torch.zeros(units))
        # A buffer, so that it is saved with the weights
        self.register_buffer("threshold", torch.zeros(latents if kind == JUMPRELU else ()))

    @property
    def latents(self) -> int:
        return len(self.decoder)

    def project(self, activations: Tensor) -> Tensor:
        """Return all latents (positions, latents) of normalised activations, before the largest are kept."""
        # The decoder's bias gets its gradient from a product with one vector, not from one with all positions
        shift = self.encoder @ (self.decoder_bias.detach() - self.decoder_bias)
        return nn.functional.linear(activations - self.decoder_bias.detach(), self.encoder, self.encoder_bias + shift)

    def keep_largest(self, found: Tensor) -> Tensor:
        """Return what training keeps of a batch's latents, as `project` gives them; the rest, and negative ones, are
        0."""
        return keep_per_row(found, self.k) if self.kind == TOPK else keep_per_batch(found, self.k)

    def encode(self, activations: Tensor) -> Tensor:
        """Return the latents (positions, latents)."""
        # With the measured threshold, not by batch: what a position gets must not depend on the others.
        return self._select(self.project(self._normalise(activations)[0]))

    def reconstruct(self, activations: Tensor) -> tuple[Tensor, Tensor]:
        """Return the latents (positions, latents), and the activations (positions, units) that they rebuild."""
        normalised, scale, shift = self._normalise(activations)
        latents = self._select(self.project(normalised))
        return latents, self.decode(latents) * scale + shift

    def decode(self, latents: Tensor) -> Tensor:
        """Return normalised activations (positions, units); `reconstruct` undoes the normalisation."""
        return latents @ self.decoder + self.decoder_bias

    def rewrite_maps(self, maps: Tensor, rewrite: Rewrite, *, keeps_error: bool = True) -> Tensor:
        """Return maps (batch, units, height, width) after `rewrite` changed the maps of their latents (batch, latents,
        ...).

            x' = x + sum over j of (z'_j - z_j) * W_dec[j]

        If no latent changes, x' is x to the bit. Gradients flow from x' to what `rewrite` gives, where the caller lets
        them. Without `keeps_error` x' is what the changed latents rebuild, and nothing else.
        """
        batch, units, height, width = maps.shape
        positions = maps.detach().permute(0, 2, 3, 1).reshape(-1, units).to(self.decoder.device)
        with torch.no_grad():
            parts = [self.reconstruct(each) for each in positions.split(_AT_ONCE)]
        latents, rebuilt = (torch.cat(each) for each in zip(*parts, strict=True))
        latent_maps = latents.reshape(batch, height, width, self.latents).permute(0, 3, 1, 2)
        # Only what latents write changes: the decoder's bias, and what the auto-encoder does not explain, stay in x.
        change = (rewrite(latent_maps) - latent_maps).permute(0, 2, 3, 1).reshape(-1, self.latents)
        # Where positions are normalised before they are encoded, W_dec[j] is scaled back to the position.
        written = (change @ self.decoder.detach()) * self._normalise(positions)[1]
        kept = maps if keeps_error else rebuilt.reshape(batch, height, width, units).permute(0, 3, 1, 2).to(maps.device)
        return kept + written.reshape(batch, height, width, units).permute(0, 3, 1, 2).to(maps.device)

    def _select(self, found: Tensor) -> Tensor:
        """Return what is kept of latents as `project` gives them."""
        if self.kind == TOPK:
            return keep_per_row(found, self.k, self.signed)
        # Negative latents never pass: training keeps none.
        return found.relu() * (found > self.threshold)

    def _normalise(self, activations: Tensor) -> tuple[Tensor, Tensor | float, Tensor | float]:
        """Return normalised activations, and what undoes that: a factor and then a summand, (positions, 1) each."""
        if self.normalisation == LAYER_NORM:
            mean, deviation = activations.mean(1, keepdim=True), activations.std(1, keepdim=True)
            # As published: the small number is added on the way in alone
            return (activations - mean) / (deviation + _LAYER_NORM_EPSILON), deviation, mean
        if self.normalisation == CONSTANT_NORM:
            length = activations.norm(dim=1, keepdim=True) / activations.shape[1] ** 0.5
            # A position of zeros, which ReLU layers have, would become NaN
            return activations / length.clamp_min(torch.finfo(length.dtype).tiny), length, 0.0
        return activations, 1.0, 0.0

    @torch.no_grad()
    def find_strongest(self, maps: Tensor, unit: int) -> int | None:
        """Return the latent that adds most to a unit, on average over images; None if none adds anything, or without
        maps.

        Maps (images, units, height, width) are those of the layer. The normalisation of a position is not undone.
        """
        if not len(maps):
            return None
        flat = maps.flatten(2)
        # Of each image the place counts where the unit is strongest.
        peaks = flat[:, unit].argmax(1)
        positions = flat.gather(2, peaks[:, None, None].expand(-1, flat.shape[1], 1))[..., 0]
        # A position is rebuilt as the sum of z_j W_j over latents j and a bias, so z_j W_j[i] is what latent j adds to
        # unit i (Marks et al., arXiv 2403.19647).
        added = (self.encode(positions) * self.decoder[:, unit]).mean(0)
        best = int(added.argmax())
        return best if added[best] > 0 else None

    def decode_nested(self, latents: Tensor) -> Iterator[Tensor]:
        """Yield the activations as each nested group of latents rebuilds them; the last is `decode`."""
        # Summed up group by group, so that each latent is decoded once.
        rebuilt: Tensor = self.decoder_bias
        start = 0
        for end in self._group_ends():
            rebuilt = rebuilt + latents[:, start:end] @ self.decoder[start:end]
            start = end
            yield rebuilt

    def _group_ends(self) -> list[int]:
        # Small auto-encoders may have groups of size 0.
        inner = {self.latents // part for part in _NESTED} - {0} if self.kind == MATRYOSHKA else set()
        return sorted(inner | {self.latents})

    @torch.no_grad()
    def normalise_decoder(self) -> None:
        """Give every row of the decoder the norm 1."""
        # Longer rows would make latents small for nothing.
        self.decoder.copy_(nn.functional.normalize(self.decoder))

    @torch.no_grad()
    def drop_parallel_gradient(self) -> None:
        """Remove from the decoder's gradient what only changes the norm of rows."""
        if self.decoder.grad is not None:
            # `normalise_decoder` undoes such a step, but Adam's averages would keep it.
            along = (self.decoder.grad * self.decoder).sum(1, keepdim=True)
            self.decoder.grad -= along * self.decoder

    @torch.no_grad()
    def measure_threshold(self, kept: Tensor, decay: float) -> None:
        """Follow the smallest latent that was kept of a batch; a batch without any changes nothing."""
        positive = kept[kept > 0]
        if positive.numel():
            lowest = positive.min()
            # The first batch sets the threshold: there is nothing to average yet.
            self.threshold.copy_(torch.where(self.threshold > 0, self.threshold.lerp(lowest, 1 - decay), lowest))

    @torch.no_grad()
    def fold_scale(self, scale: float) -> None:
        """Undo the scale after training: take activations, and give latents, as they are in the layer."""
        # Biases and threshold scale with the activations; the rows of encoder and decoder stay.
        for each in (self.encoder_bias, self.decoder_bias, self.threshold):
            each.mul_(scale)


def keep_per_row(found: Tensor, count: int, signed: bool = False) -> Tensor:
    """Return the `count` largest values of each row; the rest, and negative ones unless `signed`, are 0."""
    # Unsorted: only which values are the largest matters.
    best = found.topk(count, dim=1, sorted=False)
    return torch.zeros_like(found).scatter_(1, best.indices, best.values if signed else best.values.relu())


def keep_per_batch(found: Tensor, count: int) -> Tensor:
    """Return the `count` x rows largest values of all; the rest, and negative ones, are 0."""
    flat = found.flatten()
    best = flat.topk(count * len(found), sorted=False)
    return torch.zeros_like(flat).scatter_(0, best.indices, best.values.relu()).view_as(found)


def geometric_median(points: Tensor) -> Tensor:
    """Return the point (units,) with the least sum of distances to the points (positions, units), by Weiszfeld's
    rule."""
    centre = points.mean(0)
    for _ in range(_MEDIAN_ROUNDS):
        # A point at the centre itself would have an infinite weight.
        weights = 1 / (points - centre).norm(dim=1, keepdim=True).clamp_min(1e-6)
        centre = (points * weights).sum(0) / weights.sum()
    return centre
