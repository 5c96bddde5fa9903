"""toybox-net as a model under study. Shapes and weights are in `workers.toybox.nets`; loaded through the registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock

import torch
from PIL.Image import Image

from workers.errors import UnknownName
from workers.protocols import LabSettings, LayerInfo
from workers.toybox import nets


def load(settings: LabSettings) -> ToyboxModel:
    """The model with its committed weights. Raises MachineryError if they are missing."""
    return ToyboxModel(nets.NET_FILE, settings)


class ToyboxModel:
    """The vision model "toybox". See `protocols.VisionModel`."""

    name = "toybox"

    def __init__(self, weights: Path, settings: LabSettings) -> None:
        self._network = nets.load_net(weights).to(settings.device)
        self._settings = settings
        self._lock = Lock()
        self.revision = nets.fingerprint(weights)
        self.classes = self._network.vocabulary.classes
        """Names of the units of the layer "logits"."""

    def layers(self) -> Sequence[LayerInfo]:
        """conv1 and layer1 to layer4, read after their ReLU, then the logits."""
        widths = self._network.WIDTHS.items()
        convolutions = [LayerInfo(name, name, "conv", units) for name, units in widths]
        return [*convolutions, LayerInfo("logits", "logits", "logit", len(self.classes))]

    def maps(self, images: Sequence[Image], layers: Sequence[str]) -> Mapping[str, torch.Tensor]:
        """What the layers make of the images; see `protocols.VisionModel.maps`."""
        known = [layer.name for layer in self.layers()]
        for layer in layers:
            if layer not in known:
                raise UnknownName(f"toybox-net has no layer {layer!r}. Choose one of: {', '.join(known)}.")
        size = self._settings.batch_size
        parts = [self._batch(images[start : start + size], layers) for start in range(0, max(1, len(images)), size)]
        return {layer: torch.cat([part[layer] for part in parts]) for layer in layers}

    def _batch(self, images: Sequence[Image], layers: Sequence[str]) -> dict[str, torch.Tensor]:
        pixels = nets.preprocess(images).to(self._settings.device)
        with self._lock, torch.no_grad():
            found = self._network.maps(pixels)
        return {layer: found[layer].contiguous() for layer in layers}
