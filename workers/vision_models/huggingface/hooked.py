"""Read and replace a network's layers by hooks: the common part of models of transformers and plain modules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image

from workers.errors import UnknownName
from workers.model_cache import Slot, map_in_batches
from workers.protocols import Box, LabSettings, LayerInfo, Rewrite, check_rewritable
from workers.vision_models.huggingface.layers import NetworkLayers
from workers.vision_models.huggingface.reading import grad_cam, read_layers, read_output
from workers.vision_models.rewriting import join_outputs


class Preparation(Protocol):
    """Converts images to a network's input."""

    def pixels(self, images: Sequence[Image]) -> torch.Tensor:
        """Return (batch, channels, height, width) on the CPU."""

    def normalised(self, pixels: torch.Tensor, precision: torch.dtype) -> torch.Tensor:
        """Convert the result of `pixels`, on any device, to the network's input."""

    def find_visible(self, size: tuple[int, int]) -> Box:
        """Return the part of an image of `size` (width, height) that the network sees."""


@dataclass(frozen=True)
class OpenedNetwork:
    """The opened network and its taps, shared by all calls."""

    preparation: Preparation
    slot: Slot[Any]
    layout: NetworkLayers


class HookedModel(ABC):
    """A `protocols.TraceableModel`, and a `protocols.Classifier` if its network has a head of classes.

    Safe for threads.
    """

    def __init__(self, settings: LabSettings, name: str) -> None:
        self.name = name
        self._settings = settings
        self._precision: torch.dtype = getattr(torch, settings.precision)
        self._lock = Lock()
        self._parts: OpenedNetwork | None = None

    @abstractmethod
    def _look(self) -> OpenedNetwork:
        """Open the network for the first time. Raises UnknownName, MissingPart."""

    def _open(self) -> OpenedNetwork:
        """Return what all calls share. The first call creates it."""
        # Under the lock, or two first calls would load the network twice.
        with self._lock:
            if self._parts is None:
                self._parts = self._look()
            return self._parts

    def layers(self) -> Sequence[LayerInfo]:
        """Return the layers in the order of computation; logits, if any, come last."""
        return self._open().layout.layers()

    def find_visible(self, size: tuple[int, int]) -> Box:
        """Return the part of an image of `size` (width, height) that the model's processor keeps."""
        return self._open().preparation.find_visible(size)

    def maps(self, images: Sequence[Image], layers: Sequence[str]) -> Mapping[str, torch.Tensor]:
        """Return the maps of the layers; see `protocols.VisionModel.maps`.

        Raises MachineryError if a layer gives NaN or infinities.
        """
        self._open().layout.check(self.name, layers)
        units = {info.name: info.units for info in self.layers()}
        parts = map_in_batches(images, self._settings.batch_size, lambda batch: [self._read(batch, layers)])
        parts = parts or [{layer: torch.empty(0, units[layer], 1, 1) for layer in layers}]
        return {layer: torch.cat([part[layer] for part in parts]) for layer in layers} if parts[1:] else parts[0]

    def outputs(
        self, images: Sequence[Image], layer: str, rewrite: Rewrite | None = None, *, gradients: bool = False
    ) -> torch.Tensor:
        """Return logits, or the mean of the last hidden state, with a layer's maps replaced; see
        `protocols.RewritableModel`.

        Tokens without a position stay unchanged. Raises MachineryError if the output is NaN or infinite.
        """
        return self.trace(images, {layer: rewrite}, gradients=gradients)

    def trace(
        self, images: Sequence[Image], rewrites: Mapping[str, Rewrite | None], *, gradients: bool = False
    ) -> torch.Tensor:
        """Return the output with several layers' maps replaced; see `protocols.TraceableModel`."""
        parts = self._open()
        parts.layout.check(self.name, list(rewrites))
        for layer in rewrites:
            check_rewritable(self.name, layer, self.layers())

        def run(batch: Sequence[Image]) -> torch.Tensor:
            pixels = self._prepare(batch)
            with parts.slot as network, torch.set_grad_enabled(gradients):
                return read_output(network, pixels, parts.layout, rewrites, self.name)

        return join_outputs(images, self._settings.batch_size, run)

    def evidence(self, images: Sequence[Image], unit: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the probability of a class and where it is seen, by Grad-CAM; see `protocols.Classifier.evidence`.

        Raises UnknownName if the model knows no classes, or not this one.
        """
        logits = self._open().layout.logits
        if logits is None or not 0 <= unit < logits.units:
            what = f"classes from 0 to {logits.units - 1}" if logits else "no classes"
            raise UnknownName(f"{self.name} has {what}, so it knows no class {unit}.")
        parts = map_in_batches(images, self._settings.batch_size, lambda batch: [self._evidence(batch, unit)])
        if not parts:
            return np.empty(0, np.float32), np.empty((0, 1, 1), np.float32)
        probabilities, maps = (np.concatenate(each) for each in zip(*parts, strict=True))
        return probabilities, maps

    def _read(self, images: Sequence[Image], layers: Sequence[str]) -> dict[str, torch.Tensor]:
        parts, pixels = self._open(), self._prepare(images)
        with parts.slot as network:
            return read_layers(network, pixels, parts.layout, layers, self.name)

    def _evidence(self, images: Sequence[Image], unit: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        parts, pixels = self._open(), self._prepare(images)
        with parts.slot as network:
            probabilities, maps = grad_cam(network, pixels, parts.layout, unit, self.name)
        return probabilities.numpy(force=True), maps.numpy(force=True)

    def _prepare(self, images: Sequence[Image]) -> torch.Tensor:
        """Return the network's input on its device."""
        preparation = self._open().preparation
        return preparation.normalised(preparation.pixels(images).to(self._settings.device), self._precision)
