"""One latent of a sparse auto-encoder as the system under study: a unit of the model "sae:NAME".

Its masked images are weighted (AIM): more active places are brighter. Loaded by `lab.laboratory` through the registry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from PIL.Image import Image

from workers.errors import UnknownName
from workers.lab.imaging import surroundings_of
from workers.protocols import ConceptModel, LabSettings, UnitIndex, VisionModel
from workers.record.systems import SystemSpec
from workers.systems.unit import Unit


class Latent(Unit):
    """A `Subject`."""

    def _read_maps(self, images: Sequence[Image]) -> torch.Tensor:
        """Return the maps (batch, height, width)."""
        # Only this latent's map: there are many times as many latents as units
        return cast("ConceptModel", self._model).unit_maps(images, self.spec.layer, self.spec.unit)


def load(settings: LabSettings, spec: SystemSpec, model: VisionModel, index: UnitIndex) -> Latent:
    """Load the latent that `spec` names. Raises UnknownName if its layer is not one of latents."""
    if not any(layer.name == spec.layer and layer.kind == "latent" for layer in model.layers()):
        raise UnknownName(
            f"{spec.layer} of {spec.model} holds no latents. Study it as a unit, or choose a model sae:NAME."
        )
    return Latent(spec, model, index, settings.batch_size, surroundings_of(settings, spec, "weighted"))
