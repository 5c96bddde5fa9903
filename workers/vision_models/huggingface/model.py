"""Any image model of transformers as a model under study, by hub id or folder: "hf:microsoft/resnet-152".

Combines the modules beside it, which read its files, image processor and layers. Loaded through the registry.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch

from workers.errors import MissingPart
from workers.protocols import LabSettings
from workers.vision_models.huggingface import file_checks
from workers.vision_models.huggingface.checkpoint import Checkpoint
from workers.vision_models.huggingface.hooked import HookedModel, OpenedNetwork
from workers.vision_models.huggingface.layers import NetworkLayers, find_layers
from workers.vision_models.huggingface.preparation import ImagePreparation

READING = 3
"""Incremented whenever the layer of a name is read elsewhere, so that earlier measurements are redone."""


def load(settings: LabSettings, name: str) -> HuggingFaceModel:
    """Return the model by hub id or folder. Nothing is read yet, so no error is raised yet."""
    return HuggingFaceModel(settings, name)


def missing(settings: LabSettings, name: str) -> str:  # noqa: ARG001 - the registry's contract
    """Say what keeps the model from loading offline, and the command that downloads it; "" if nothing does."""
    return file_checks.missing(name)


class HuggingFaceModel(HookedModel):
    """A `protocols.RewritableModel`, and a `protocols.Classifier` if its network has a classification head.

    Safe for threads. The first call that needs its files downloads them from the hub unless HF_HUB_OFFLINE is set,
    and raises UnknownName or MissingPart if they are missing.
    """

    def __init__(self, settings: LabSettings, name: str) -> None:
        super().__init__(settings, f"hf:{name}")
        self._checkpoint = Checkpoint(name)

    @cached_property
    def revision(self) -> str:
        """Fingerprint of its files. Half precision changes the weights, and another reading changes the figures."""
        short = "" if self._settings.precision == "float32" else f"-{self._settings.precision}"
        return f"{self._checkpoint.revision}-{READING}{short}"

    def _look(self) -> OpenedNetwork:
        _ = self._checkpoint.network_class  # first, since it says best what is wrong
        preparation = ImagePreparation(self._checkpoint.folder)
        # The slot reads weights only when it is entered, so listing layers does not wait for them.
        slot = self._settings.model_cache.slot(
            f"{self.name} {self.revision}",
            lambda: self._checkpoint.load(self._settings.device, self._precision),
        )
        # Layers are found without weights if possible; gigabytes are read only if the network computes with numbers.
        try:
            layout = find_layers(self._checkpoint.empty(), preparation.size)
        except (RuntimeError, NotImplementedError, ValueError, TypeError, AttributeError):  # it needs numbers
            with slot as network:
                layout = self._find_layers(network, preparation.size)
        return OpenedNetwork(preparation, slot, layout)

    def _find_layers(self, network: Any, size: tuple[int, int]) -> NetworkLayers:
        try:
            return find_layers(network, size)
        # Not the model's fault: it can be tried again with more memory.
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, ValueError, TypeError, AttributeError) as error:
            raise MissingPart(
                f"{self.name} cannot look at single images of {size[1]} x {size[0]} pixels: {error}. "
                "Choose another model, or correct its preprocessor_config.json."
            ) from error
