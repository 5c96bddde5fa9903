"""Base class of models with a network of our own and one published file of weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

import torch
from PIL import Image

from workers import hub
from workers.model_cache import Slot, map_in_batches
from workers.protocols import Box, LabSettings, LayerInfo, Rewrite, check_layers, check_rewritable
from workers.vision_models.centre_crop import CentreCrop
from workers.vision_models.rewriting import join_outputs, replace_outputs
from workers.weights import check_finite

Network = TypeVar("Network", bound=torch.nn.Module)


@dataclass(frozen=True)
class _Opened(Generic[Network]):
    """The content of the file."""

    slot: Slot[Network]
    layers: Sequence[LayerInfo]
    crop: CentreCrop


def file_of(name: str) -> Path | None:
    """Return the path if it is an existing file, else None."""
    path = Path(name).expanduser()
    return path.resolve() if path.is_file() else None


class SingleFileModel(ABC, Generic[Network]):
    """A `protocols.VisionModel` that crops, and a `protocols.RewritableModel`. Safe for threads.

    The first call that needs its file raises UnknownName or MissingPart if it is missing.
    """

    def __init__(self, settings: LabSettings, family: str, name: str, files: hub.Groups) -> None:
        self.name = f"{family}:{name}"
        self._settings = settings
        self._file = file_of(name)
        self._id = name
        self._files = files
        self._precision: torch.dtype = getattr(torch, settings.precision)
        self._lock = Lock()
        self._opened: _Opened[Network] | None = None

    @abstractmethod
    def _network(self, path: Path) -> Network:
        """Return the network with the weights of a file, on the CPU. Raises MissingPart."""

    @abstractmethod
    def _layers(self, network: Network) -> list[LayerInfo]: ...

    @abstractmethod
    def _crop(self, network: Network) -> CentreCrop: ...

    @abstractmethod
    def _maps(self, network: Network, pixels: torch.Tensor) -> Mapping[str, torch.Tensor]:
        """Return the output of every layer for prepared images (batch, 3, side, side)."""

    def _find_module(self, network: Network, layer: str) -> torch.nn.Module:
        """Return the module whose output is the maps of a layer."""
        return network.get_submodule(layer)

    @property
    def revision(self) -> str:
        """Fingerprint of its file. Half precision changes the weights."""
        # Half precision changes the activations, so they are not stored under the same revision.
        short = "" if self._settings.precision == "float32" else f"-{self._settings.precision}"
        # Twelve digits: it is part of folder names.
        return f"{hub.file_fingerprint(self._path())[:12]}{short}"

    def layers(self) -> Sequence[LayerInfo]:
        """Return the layers in the order of computation."""
        return self._open().layers

    def find_visible(self, size: tuple[int, int]) -> Box:
        """Return the part of an image of `size` (width, height) that remains after cropping."""
        return self._open().crop.find_visible(size)

    def maps(self, images: Sequence[Image.Image], layers: Sequence[str]) -> Mapping[str, torch.Tensor]:
        """Return the maps of the layers; see `protocols.VisionModel.maps`.

        Raises MachineryError if a layer gives NaN or infinities.
        """
        known = {info.name: info.units for info in self.layers()}
        check_layers(self.name, layers, known)
        parts = map_in_batches(images, self._settings.batch_size, lambda batch: [self._batch(batch, layers)])
        # Nothing to join, but callers look up every layer.
        parts = parts or [{layer: torch.empty(0, known[layer], 1, 1) for layer in layers}]
        return {layer: torch.cat([part[layer] for part in parts]) for layer in layers} if parts[1:] else parts[0]

    def outputs(
        self, images: Sequence[Image.Image], layer: str, rewrite: Rewrite | None = None, *, gradients: bool = False
    ) -> torch.Tensor:
        """Return the network's output with a layer's maps replaced; see `protocols.RewritableModel`.

        Raises MachineryError if that is NaN or infinite.
        """
        return self.trace(images, {layer: rewrite}, gradients=gradients)

    def trace(
        self, images: Sequence[Image.Image], rewrites: Mapping[str, Rewrite | None], *, gradients: bool = False
    ) -> torch.Tensor:
        """Return the output with several layers' maps replaced; see `protocols.TraceableModel`."""
        for layer in rewrites:
            check_rewritable(self.name, layer, self.layers())
        opened = self._open()

        def run(batch: Sequence[Image.Image]) -> torch.Tensor:
            pixels = opened.crop.pixels(batch)
            with (
                opened.slot as network,
                torch.set_grad_enabled(gradients),
                replace_outputs((self._find_module(network, layer), each) for layer, each in rewrites.items()),
            ):
                found: torch.Tensor = network(self._prepare(pixels, opened.crop)).float()
            check_finite(found, "the output", self.name)
            return found

        return join_outputs(images, self._settings.batch_size, run)

    def _prepare(self, pixels: torch.Tensor, crop: CentreCrop) -> torch.Tensor:
        """Convert bytes (batch, 3, side, side) to the network's input."""
        # Bytes are moved before they become floats: a quarter of the traffic.
        return crop.normalised(pixels.to(self._settings.device)).to(self._precision)

    def _batch(self, images: Sequence[Image.Image], layers: Sequence[str]) -> dict[str, torch.Tensor]:
        opened = self._open()
        pixels = opened.crop.pixels(images)
        with opened.slot as network, torch.no_grad():
            found = self._maps(network, self._prepare(pixels, opened.crop))
            # In float32 whatever the network's precision, since the index counts in float32.
            maps = {layer: found[layer].float() for layer in layers}
        for layer, each in maps.items():
            check_finite(each, layer, self.name)
        return maps

    def _path(self) -> Path:
        if self._file is None:
            self._file = hub.files(hub.folder(self._id, self._files), self._files)[0]
        return self._file

    def _open(self) -> _Opened[Network]:
        """Return the slot of its weights, its layers and its crop. The first call reads the file."""
        # Under the lock, or two first calls would load the weights twice.
        with self._lock:
            if self._opened is None:
                slot = self._settings.model_cache.slot(f"{self.name} {self.revision}", self._load)
                with slot as network:
                    self._opened = _Opened(slot, self._layers(network), self._crop(network))
            return self._opened

    def _load(self) -> Network:
        network = self._network(self._path())
        return network.to(self._settings.device, self._precision).eval().requires_grad_(False)
