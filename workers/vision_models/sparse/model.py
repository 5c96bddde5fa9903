"""A sparse auto-encoder as a model under study: "sae:NAME" has one layer, whose units are latents.

The map of a latent says how active it is at each position of the layer below. Its activation is the maximum, as for
a unit. Loaded through the registry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from pathlib import Path
from typing import cast

import torch
from PIL.Image import Image

from workers import registry
from workers.errors import MachineryError, MissingPart, RequestError
from workers.model_cache import map_in_batches
from workers.protocols import (
    Box,
    LabSettings,
    LayerInfo,
    RewritableModel,
    Rewrite,
    VisionModel,
    check_layers,
    probabilities,
    visible_part,
)
from workers.sparse.storage import SparseCard, check_weights, find_card, find_path, load_autoencoder

_AT_ONCE = 4096
"""Positions encoded at a time: before the largest latents are selected, each position has values for all of them."""


def missing(settings: LabSettings, name: str) -> str:
    """Say what keeps it, or the model below it, from loading; "" if nothing does."""
    try:
        card = find_card(settings.state, name)
    except (MissingPart, RequestError) as error:
        return str(error)
    return registry.missing(registry.VISION_MODELS, card.model_key, settings)


def load(settings: LabSettings, name: str) -> SparseModel:
    """Return the auto-encoder of this name on its model.

    Raises RequestError for an invalid name, MissingPart if it is missing or belongs to other weights.
    """
    card = find_card(settings.state, name)
    below: VisionModel = registry.load(registry.VISION_MODELS, card.model_key)(settings)
    # An auto-encoder means nothing on other weights than those it was trained on.
    check_weights(card, below.revision)
    return SparseModel(settings, card, below)


class SparseModel:
    """A `protocols.LatentModel` and `RewritableModel`. The model below has its own lock."""

    def __init__(self, settings: LabSettings, card: SparseCard, below: VisionModel) -> None:
        self.name = f"sae:{card.name}"
        self.base = card.model_key
        self.revision = card.fingerprint[:12]
        self.card = card
        self._below = below
        self._keeps_error = True
        self._settings = settings
        self._path = find_path(settings.state, card.name)
        # Remembered, since weights are loaded later and may be unloaded and loaded again.
        self._written = _time_of(self._path)
        self._scale = next(info.scale for info in below.layers() if info.name == card.layer)
        self._slot = settings.model_cache.slot(
            f"{self.name} {self.revision}", lambda: load_autoencoder(settings.state, card.name)[0].to(settings.device)
        )

    def about(self) -> str:
        """Say where it comes from, and how well it explains its layer."""
        card, quality = self.card, self.card.quality
        kind = f"{card.kind}, k {card.k}" if card.k else card.kind
        start = f"{card.latents:,} latents ({kind}) of {card.layer} of {card.model_key}"
        figures = (
            f"{quality.unexplained:.1%} of variance unexplained with {quality.active:.1f} active latents, "
            f"{quality.dead:.1%} of latents dead"
        )
        if card.source:
            return f"{start}, from {card.source}; on {quality.positions:,} positions of {card.dataset}: {figures}"
        return f"{start}, trained on {card.dataset}: {figures}"

    def layers(self) -> Sequence[LayerInfo]:
        """Return its one layer, named like the layer below."""
        return [LayerInfo(self.card.layer, self.card.layer_path, "latent", self.card.latents)]

    def find_visible(self, size: tuple[int, int]) -> Box:
        """Return the part of an image of `size` (width, height) that the model below sees."""
        return visible_part(self._below, size)

    def maps(self, images: Sequence[Image], layers: Sequence[str]) -> Mapping[str, torch.Tensor]:
        """Return (batch, latents, height, width); see `protocols.VisionModel.maps`. Published ones may be negative."""
        check_layers(self.name, layers, [self.card.layer])
        return {layer: self._read(images, slice(None)) for layer in layers}

    def unit_maps(self, images: Sequence[Image], layer: str, unit: int) -> torch.Tensor:
        """Return the maps of one latent, (batch, height, width), without keeping those of all others in memory."""
        check_layers(self.name, [layer], [self.card.layer])
        return self._read(images, slice(unit, unit + 1))[:, 0]

    def find_strongest(self, images: Sequence[Image], unit: int) -> int | None:
        """Return the latent that adds most to a unit of the layer below; see `protocols.LatentModel`."""
        self._check_file()
        maps = self._read_below(images)
        with self._slot as network:
            return network.find_strongest(maps.to(network.decoder.device), unit)

    def _read_below(self, images: Sequence[Image]) -> torch.Tensor:
        """Return the layer's own maps, (batch, units, height, width)."""
        # As in training: auto-encoders of logits learned from probabilities.
        return probabilities(self._below.maps(images, [self.card.layer])[self.card.layer], self._scale)

    def outputs(
        self, images: Sequence[Image], layer: str, rewrite: Rewrite | None = None, *, gradients: bool = False
    ) -> torch.Tensor:
        """Return the output of the model below with latents replaced; only their reconstruction changes.

        See `SparseAutoencoder.rewrite_maps` for the formula. Raises UnknownName for another layer, MissingPart if
        the output of the model below does not depend on it.
        """
        check_layers(self.name, [layer], [self.card.layer])
        if not hasattr(self._below, "outputs"):
            raise MissingPart(
                f"{self.base}, the model below {self.name}, has no output of its own that follows from {layer}. Choose "
                "an auto-encoder of another model."
            )
        below = cast("RewritableModel", self._below)
        # With its error added, an unchanged reconstruction is the layer itself.
        if rewrite is None and self._keeps_error:
            return below.outputs(images, layer, gradients=gradients)
        with self.lift(rewrite or _keep_copy) as replace:
            return below.outputs(images, layer, replace, gradients=gradients)

    @contextmanager
    def lift(self, rewrite: Rewrite) -> Iterator[Rewrite]:
        """Return a rewrite of latents as one of the layer below; see `protocols.OverlaidModel`."""
        self._check_file()
        # Taken before the slot of the model below, which calls the rewrite while it holds its own
        with self._slot as network:
            yield partial(network.rewrite_maps, rewrite=rewrite, keeps_error=self._keeps_error)

    def drop_error(self) -> SparseModel:
        """Return a model whose layer is replaced by the latents' reconstruction, without the unexplained rest."""
        # A shallow copy shares weights and lock.
        bare = copy(self)
        bare._keeps_error = False
        return bare

    def output_layers(self) -> Sequence[LayerInfo]:
        """Return the layers of the model below, whose output it is."""
        return self._below.layers()

    def _check_file(self) -> None:
        """Raise MachineryError if the file has changed since it was loaded."""
        if _time_of(self._path) != self._written:
            raise MachineryError(
                f"The auto-encoder {self.card.name!r} was made anew, or removed, since it was loaded. Restart the "
                "workers, and give another one another name."
            )

    def _read(self, images: Sequence[Image], latents: slice) -> torch.Tensor:
        self._check_file()
        parts = map_in_batches(images, self._settings.batch_size, lambda batch: [self._encode(batch, latents)])
        # For no images too the shape must be right: an empty batch is encoded.
        return torch.cat(parts) if parts else self._encode([], latents)

    def _encode(self, images: Sequence[Image], latents: slice) -> torch.Tensor:
        """Return (batch, latents, height, width)."""
        found = self._read_below(images)
        batch, units, height, width = found.shape
        # Each position is one sample: an auto-encoder knows nothing of the image.
        positions = found.permute(0, 2, 3, 1).reshape(-1, units)
        with self._slot as network, torch.no_grad():
            positions = positions.to(network.decoder.device)  # the model below may give its maps on the processor
            active = torch.cat([network.encode(each)[:, latents] for each in positions.split(_AT_ONCE)])
        return active.reshape(batch, height, width, active.shape[1]).permute(0, 3, 1, 2).contiguous()


def _keep_copy(maps: torch.Tensor) -> torch.Tensor:
    return maps


def _time_of(path: Path) -> int:
    """Return the modification time of a file in ns; 0 if it is missing."""
    return path.stat().st_mtime_ns if path.exists() else 0
