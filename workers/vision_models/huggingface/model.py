"""Any image model of transformers as a model under study, by hub id or by folder: "hf:microsoft/resnet-152".

Its files, its image processor and its layers are read by the modules beside it; this joins them. Loaded through
the registry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image

from workers.errors import MissingPart, UnknownName
from workers.model_cache import Slot, in_batches
from workers.protocols import Box, LabSettings, LayerInfo, Rewrite, check_rewritable
from workers.vision_models.huggingface import file_checks
from workers.vision_models.huggingface.checkpoint import Checkpoint
from workers.vision_models.huggingface.layers import NetworkLayers, find_layers
from workers.vision_models.huggingface.preparation import ImagePreparation
from workers.vision_models.huggingface.reading import grad_cam, read_layers, read_output
from workers.vision_models.rewriting import join_outputs

READING = 3
"""Counts up whenever a layer of a name is read elsewhere than before: what was measured by then is measured anew."""


def load(settings: LabSettings, name: str) -> HuggingFaceModel:
    """The model by hub id or folder. Nothing is read yet, so nothing is refused yet."""
    return HuggingFaceModel(settings, name)


def missing(settings: LabSettings, name: str) -> str:  # noqa: ARG001 - the registry's contract
    """What keeps the model from being used offline, and the command that gets it; "" if nothing does."""
    return file_checks.missing(name)


@dataclass(frozen=True)
class _Parts:
    preparation: ImagePreparation
    slot: Slot[Any]
    layout: NetworkLayers


class HuggingFaceModel:
    """A `protocols.RewritableModel`, and a `protocols.Classifier` if its network has a head of classes.

    Safe for threads. What first needs its files raises UnknownName or MissingPart if they are not there, and fetches
    them from the hub unless HF_HUB_OFFLINE is set.
    """

    def __init__(self, settings: LabSettings, name: str) -> None:
        self.name = f"hf:{name}"
        self._settings = settings
        self._checkpoint = Checkpoint(name)
        self._precision: torch.dtype = getattr(torch, settings.precision)
        self._lock = Lock()
        self._parts: _Parts | None = None

    @cached_property
    def revision(self) -> str:
        """Of its files; half precision makes other weights of them, and another reading gives other figures."""
        short = "" if self._settings.precision == "float32" else f"-{self._settings.precision}"
        return f"{self._checkpoint.revision}-{READING}{short}"

    def layers(self) -> Sequence[LayerInfo]:
        """In the order in which they are computed; the logits, if there are any, come last."""
        return self._open().layout.layers()

    def find_visible(self, size: tuple[int, int]) -> Box:
        """The part of an image of `size` (width, height) that the model's processor does not cut off."""
        return self._open().preparation.find_visible(size)

    def maps(self, images: Sequence[Image], layers: Sequence[str]) -> Mapping[str, torch.Tensor]:
        """What the layers make of the images; see `protocols.VisionModel.maps`.

        Raises MachineryError if a layer gives NaN or infinities.
        """
        self._open().layout.check(self.name, layers)
        units = {info.name: info.units for info in self.layers()}
        parts = in_batches(images, self._settings.batch_size, lambda batch: [self._read(batch, layers)])
        parts = parts or [{layer: torch.empty(0, units[layer], 1, 1) for layer in layers}]
        return {layer: torch.cat([part[layer] for part in parts]) for layer in layers} if parts[1:] else parts[0]

    def outputs(
        self, images: Sequence[Image], layer: str, rewrite: Rewrite | None = None, *, gradients: bool = False
    ) -> torch.Tensor:
        """Logits, or the mean of the last hidden state, with a layer's maps replaced; see `protocols.RewritableModel`.

        Tokens that stand for no place stay as they are. Raises MachineryError if the output is NaN or infinite.
        """
        return self.trace(images, {layer: rewrite}, gradients=gradients)

    def trace(
        self, images: Sequence[Image], rewrites: Mapping[str, Rewrite | None], *, gradients: bool = False
    ) -> torch.Tensor:
        """The same with several layers' maps replaced; see `protocols.TraceableModel`."""
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
        """Probability of a class and where it is seen, by Grad-CAM; see `protocols.Classifier.evidence`.

        Raises UnknownName if the model knows no classes, or not this one.
        """
        logits = self._open().layout.logits
        if logits is None or not 0 <= unit < logits.units:
            what = f"classes from 0 to {logits.units - 1}" if logits else "no classes"
            raise UnknownName(f"{self.name} has {what}, so it knows no class {unit}.")
        parts = in_batches(images, self._settings.batch_size, lambda batch: [self._evidence(batch, unit)])
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
        """As the network takes them, on its device."""
        preparation = self._open().preparation
        return preparation.normalised(preparation.pixels(images).to(self._settings.device), self._precision)

    def _open(self) -> _Parts:
        """What all calls share, made by the first."""
        with self._lock:
            if self._parts is None:
                _ = self._checkpoint.network_class  # first, since it says best what is wrong
                preparation = ImagePreparation(self._checkpoint.folder)
                slot = self._settings.model_cache.slot(
                    f"{self.name} {self.revision}",
                    lambda: self._checkpoint.load(self._settings.device, self._precision),
                )
                try:
                    layout = find_layers(self._checkpoint.empty(), preparation.size)
                except (RuntimeError, NotImplementedError, ValueError, TypeError, AttributeError):  # it needs numbers
                    with slot as network:
                        layout = self._find_layers(network, preparation.size)
                self._parts = _Parts(preparation, slot, layout)
            return self._parts

    def _find_layers(self, network: Any, size: tuple[int, int]) -> NetworkLayers:
        try:
            return find_layers(network, size)
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, ValueError, TypeError, AttributeError) as error:
            raise MissingPart(
                f"{self.name} cannot look at single images of {size[1]} x {size[0]} pixels: {error}. "
                "Choose another model, or correct its preprocessor_config.json."
            ) from error
