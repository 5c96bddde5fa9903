"""toybox-net as a model under study. Shapes and weights are in `workers.toybox.networks.nets`; loaded through the
registry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image

from workers.errors import UnknownName
from workers.model_cache import map_in_batches
from workers.protocols import LabSettings, LayerInfo, Rewrite, Scale, check_layers, check_rewritable, probabilities
from workers.toybox.networks import nets
from workers.vision_models.rewriting import join_outputs, replace_outputs


def load(settings: LabSettings) -> ToyboxModel:
    """Return the model with its committed weights. Raises MachineryError if they are missing."""
    return ToyboxModel(nets.NET_FILE, settings)


SCALE: Scale = "sigmoid"
"""A scene shows any number of classes, and the network is trained on each separately (`networks.training_tasks`)."""


class ToyboxModel:
    """The vision model "toybox". See `protocols.Classifier`."""

    name = "toybox"

    def __init__(self, weights: Path, settings: LabSettings) -> None:
        self._settings = settings
        self._precision: torch.dtype = getattr(torch, settings.precision)
        self.revision = nets.fingerprint(weights)
        # Keyed by the fingerprint of the weights, so that retrained weights never share a slot with old ones
        self._slot = settings.model_cache.slot(
            f"{self.name} {self.revision}", lambda: nets.load_net(weights).to(settings.device, self._precision)
        )
        with self._slot as network:
            self.classes = network.vocabulary.classes
        """Names of the units of the layer "logits"."""

    def layers(self) -> Sequence[LayerInfo]:
        """Return conv1 and layer1 to layer4, read after their ReLU, then the logits."""
        widths = nets.ToyboxNet.WIDTHS.items()
        # All of these are convolutions; the logits follow as a layer of their own because their units have names
        convolutions = [LayerInfo(name, name, "conv", units) for name, units in widths]
        return [*convolutions, LayerInfo("logits", "logits", "logit", len(self.classes), self.classes, SCALE)]

    def maps(self, images: Sequence[Image], layers: Sequence[str]) -> Mapping[str, torch.Tensor]:
        """Return the maps of the layers; see `protocols.VisionModel.maps`."""
        check_layers("toybox-net", layers, [layer.name for layer in self.layers()])
        parts = map_in_batches(images, self._settings.batch_size, lambda batch: [self._batch(batch, layers)])
        # Without images there is no batch, yet callers read the shapes: an empty batch gives them
        parts = parts or [self._batch([], layers)]
        return {layer: torch.cat([part[layer] for part in parts]) for layer in layers}

    def outputs(
        self, images: Sequence[Image], layer: str, rewrite: Rewrite | None = None, *, gradients: bool = False
    ) -> torch.Tensor:
        """Return the logits with a layer's maps replaced; see `protocols.RewritableModel`."""
        return self.trace(images, {layer: rewrite}, gradients=gradients)

    def trace(
        self, images: Sequence[Image], rewrites: Mapping[str, Rewrite | None], *, gradients: bool = False
    ) -> torch.Tensor:
        """Return the logits with several layers' maps replaced; see `protocols.TraceableModel`."""
        for layer in rewrites:
            check_rewritable(self.name, layer, self.layers())

        def run(batch: Sequence[Image]) -> torch.Tensor:
            pixels = self._prepare(batch)
            with (
                self._slot as network,
                torch.set_grad_enabled(gradients),
                replace_outputs((network.get_submodule(layer), each) for layer, each in rewrites.items()),
            ):
                logits: torch.Tensor = network(pixels)
            # Half precision is for the network; figures are computed from float32
            return logits.float()

        return join_outputs(images, self._settings.batch_size, run)

    def evidence(self, images: Sequence[Image], unit: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the probability of a class and where it is seen; see `protocols.Classifier.evidence`.

        A logit is a mixture of the maxima of layer4, so its weights are its gradient. The map is layer4 weighted by
        them, as in Grad-CAM (Selvaraju et al., ICCV 2017, equations 1 and 2). Raises UnknownName.
        """
        if not 0 <= unit < len(self.classes):
            raise UnknownName(f"toybox-net knows no class {unit}. Choose one from 0 to {len(self.classes) - 1}.")
        found = self.maps(images, ["layer4", "logits"])
        with self._slot as network:
            weights = network.logits.weight[unit].float()
        # The ReLU of Grad-CAM: only evidence for the class is shown, not evidence against it
        maps = torch.einsum("u,buhw->bhw", weights, found["layer4"]).relu()
        shares = probabilities(found["logits"].flatten(1), SCALE)[:, unit]
        return shares.numpy(force=True), maps.numpy(force=True)

    def _batch(self, images: Sequence[Image], layers: Sequence[str]) -> dict[str, torch.Tensor]:
        pixels = self._prepare(images)
        with self._slot as network, torch.no_grad():
            found = network.maps(pixels)
        return {layer: found[layer].float().contiguous() for layer in layers}

    def _prepare(self, images: Sequence[Image]) -> torch.Tensor:
        return nets.preprocess(images).to(self._settings.device, self._precision)
