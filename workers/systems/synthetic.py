"""A synthetic neuron as the system under study: it responds with its detector's confidence where it sees its concepts.

Like `unit`, but with its own masks, so answering needs no quantile from the index. Loaded by `lab.laboratory`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from PIL.Image import Image

from workers.errors import UnknownName
from workers.lab.imaging import draw_map, mask_image, surroundings_of
from workers.protocols import WHOLE_IMAGE, ConceptModel, LabSettings, Response, UnitIndex, VisionModel
from workers.record.systems import SystemSpec
from workers.systems.indexed import IndexedSystem


class SyntheticNeuron(IndexedSystem[ConceptModel]):
    """A `Subject`."""

    def respond(self, images: Sequence[Image]) -> list[Response]:
        """Return activation in [0, 1] and masked image for each image: unmasked where it is silent."""
        # The threshold 0: a synthetic neuron's mask is its detections
        maps = self._model.unit_maps(images, self.spec.layer, self.spec.unit).numpy(force=True)
        return [
            Response(
                float(each.max()),
                mask_image(image, each, 0.0, WHOLE_IMAGE, self._surroundings),
                draw_map(each, 0.0, image.size),
            )
            for image, each in zip(images, maps, strict=True)
        ]


def load(settings: LabSettings, spec: SystemSpec, model: VisionModel, index: UnitIndex) -> SyntheticNeuron:
    """Load the neuron that `spec` names. Raises UnknownName if its layer is not one of synthetic neurons."""
    if not any(layer.name == spec.layer and layer.kind == "concept" for layer in model.layers()):
        raise UnknownName(
            f"{spec.layer} of {spec.model} holds no synthetic neurons. Study it as a unit, or choose a synthetic model."
        )
    return SyntheticNeuron(spec, cast("ConceptModel", model), index, surroundings_of(settings, spec))
