"""A classifier trained on this installation as a model under study: "classifier:NAME", with weights in the state
folder.

Layers: `features`, the maps before the last layer, and `logits`. `workers.spurious.training` writes the files.
Loaded through the registry.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image

from workers.errors import MissingPart, UnknownName
from workers.hub import file_fingerprint
from workers.model_cache import map_in_batches
from workers.protocols import LabSettings, LayerInfo, Rewrite, check_layers, check_rewritable, probabilities
from workers.vision_models.classifier.network import load_classifier, normalise, read_card, resize
from workers.vision_models.rewriting import join_outputs, replace_outputs


def _find_file(settings: LabSettings, name: str) -> Path:
    """Return the file of a classifier's weights. Raises UnknownName for an invalid name."""
    # The name becomes part of a path, so no separator may be in it.
    if not re.fullmatch(r"[\w.-]{1,150}", name):
        raise UnknownName(f"{name!r} is no name of a classifier: take letters, digits, dots and hyphens.")
    return settings.state / "classifiers" / f"{name}.safetensors"


def missing(settings: LabSettings, name: str) -> str:
    """Say what keeps it from loading; "" if nothing does."""
    if _find_file(settings, name).exists():
        return ""
    return f"There is no classifier {name!r} yet. `manage.py evaluate spurious` trains one."


def load(settings: LabSettings, name: str) -> TrainedClassifier:
    """Return the model. Raises MissingPart if its weights are missing or were not trained here."""
    if lack := missing(settings, name):
        raise MissingPart(lack)
    return TrainedClassifier(settings, name)


class TrainedClassifier:
    """See `protocols.Classifier`. Safe for threads."""

    def __init__(self, settings: LabSettings, name: str) -> None:
        self.name = f"classifier:{name}"
        self._settings = settings
        self._precision: torch.dtype = getattr(torch, settings.precision)
        path = _find_file(settings, name)
        self.card = read_card(path)
        # Twelve digits: it is part of folder names.
        self.revision = file_fingerprint(path)[:12]
        self._slot = settings.model_cache.slot(
            f"{self.name} {self.revision}", lambda: load_classifier(path)[0].to(settings.device, self._precision)
        )
        with self._slot as network:
            self._units = network.units

    def layers(self) -> Sequence[LayerInfo]:
        classes = self.card.classes
        return [
            LayerInfo("features", "body", "conv", self._units),
            LayerInfo("logits", "head", "logit", len(classes), classes, "softmax"),
        ]

    def maps(self, images: Sequence[Image], layers: Sequence[str]) -> Mapping[str, torch.Tensor]:
        """Return the maps of the layers; see `protocols.VisionModel.maps`."""
        check_layers(self.name, layers, [layer.name for layer in self.layers()])
        parts = map_in_batches(images, self._settings.batch_size, lambda batch: [self._batch(batch, layers)])
        # The lookup below needs every layer, also for no images.
        parts = parts or [{info.name: torch.zeros(0, info.units, 1, 1) for info in self.layers()}]
        return {layer: torch.cat([part[layer] for part in parts]) for layer in layers}

    def outputs(
        self, images: Sequence[Image], layer: str, rewrite: Rewrite | None = None, *, gradients: bool = False
    ) -> torch.Tensor:
        """Return the logits with the features' maps replaced; see `protocols.RewritableModel`."""
        return self.trace(images, {layer: rewrite}, gradients=gradients)

    def trace(
        self, images: Sequence[Image], rewrites: Mapping[str, Rewrite | None], *, gradients: bool = False
    ) -> torch.Tensor:
        """Return the logits with maps replaced, by layer; see `protocols.TraceableModel`. Only one layer precedes
        the logits."""
        for layer in rewrites:
            check_rewritable(self.name, layer, self.layers())

        def run(batch: Sequence[Image]) -> torch.Tensor:
            pixels = self._prepare(batch)
            with (
                self._slot as network,
                torch.set_grad_enabled(gradients),
                replace_outputs((network.body, rewrite) for rewrite in rewrites.values()),
            ):
                logits: torch.Tensor = network(pixels)
            return logits.float()

        return join_outputs(images, self._settings.batch_size, run)

    def evidence(self, images: Sequence[Image], unit: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the probability of a class and where it is seen; see `protocols.Classifier.evidence`.

        The head is linear, so its weights weigh the maps (Zhou et al., CVPR 2016). Raises UnknownName.
        """
        classes = len(self.card.classes)
        if not 0 <= unit < classes:
            raise UnknownName(f"{self.name} knows no class {unit}. Choose one from 0 to {classes - 1}.")
        found = self.maps(images, ["features", "logits"])
        with self._slot as network:
            weights = network.head.weight[unit].float()
        # ReLU as in Grad-CAM: only what speaks for the class is evidence of it.
        maps = torch.einsum("u,buhw->bhw", weights, found["features"]).relu()
        return probabilities(found["logits"].flatten(1), "softmax")[:, unit].numpy(force=True), maps.numpy(force=True)

    def read_features(self, images: Sequence[Image]) -> NDArray[np.float32]:
        """Return the features as its head takes them, (images, units)."""
        # Left before `maps`, which takes the slot itself.
        with self._slot as network:
            pool = network.pool
        return pool(self.maps(images, ["features"])["features"]).numpy(force=True)

    def read_head(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return weights (classes, units) and bias (classes,) of the last layer."""
        with self._slot as network:
            return network.head.weight.float().numpy(force=True), network.head.bias.float().numpy(force=True)

    def about(self) -> str:
        """Say which weights they are, for people."""
        return f"trained here on {self.card.dataset} with the seed {self.card.seed}"

    def _batch(self, images: Sequence[Image], layers: Sequence[str]) -> dict[str, torch.Tensor]:
        pixels = self._prepare(images)
        with self._slot as network, torch.no_grad():
            maps = network.maps(pixels)
            # Logits as maps of 1 x 1: every layer has the same form.
            found = {"features": maps, "logits": network.head(network.pool(maps))[:, :, None, None]}
        # In float32 whatever the network's precision, since the index counts in float32.
        return {layer: found[layer].float().contiguous() for layer in layers}

    def _prepare(self, images: Sequence[Image]) -> torch.Tensor:
        pixels = normalise(resize(images, self.card.shape), self.card.shape)
        return pixels.to(self._settings.device, self._precision)
