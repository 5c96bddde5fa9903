"""A synthetic neuron as the thing under study: it responds with its detector's confidence where it sees its concepts.

Like `unit`, but its masks are its own, so answering needs no quantile from the index. Loaded by `lab.laboratory`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import cast

from PIL.Image import Image

from workers.errors import UnknownName
from workers.lab.imaging import mask_image, surroundings_of
from workers.protocols import (
    WHOLE_IMAGE,
    ConceptModel,
    Exemplar,
    LabSettings,
    Progress,
    Response,
    Surroundings,
    UnitIndex,
    VisionModel,
    no_progress,
)
from workers.record.systems import OrdinaryActivations, SystemSpec


class SyntheticNeuron:
    """A `Subject`. Safe for threads: the detector holds its own lock."""

    def __init__(
        self, spec: SystemSpec, model: ConceptModel, index: UnitIndex, surroundings: Surroundings = "dim"
    ) -> None:
        self.spec = spec
        self._model = model
        self._index = index
        self._surroundings = surroundings
        self._lock = threading.Lock()
        self._exemplars: list[Exemplar] | None = None

    def respond(self, images: Sequence[Image]) -> list[Response]:
        """Activation in [0, 1] and masked image for each image: plain where it is silent."""
        maps = self._model.unit_maps(images, self.spec.layer, self.spec.unit).numpy(force=True)
        return [
            Response(float(each.max()), mask_image(image, each, 0.0, WHOLE_IMAGE, self._surroundings))
            for image, each in zip(images, maps, strict=True)
        ]

    def exemplars(self, progress: Progress = no_progress) -> Sequence[Exemplar]:
        """Best first; empty if no image of the dataset shows what it responds to."""
        record = self._index.unit(self.spec.layer, self.spec.unit, progress)
        with self._lock:
            if self._exemplars is None:
                self._exemplars = self._measure(record.positions)
        return self._exemplars

    def ordinary(self, progress: Progress = no_progress) -> OrdinaryActivations | None:
        """What ordinary images of the dataset get."""
        return self._index.unit(self.spec.layer, self.spec.unit, progress).ordinary()

    def _measure(self, positions: Sequence[int]) -> list[Exemplar]:
        pictures = [self._index.picture(position) for position in positions]
        responses = self.respond([picture.image for picture in pictures])
        return [
            Exemplar(response.activation, picture, response.masked, position)
            for response, picture, position in zip(responses, pictures, positions, strict=True)
        ]


def load(settings: LabSettings, spec: SystemSpec, model: VisionModel, index: UnitIndex) -> SyntheticNeuron:
    """The neuron that `spec` names. Raises UnknownName if its layer is not one of synthetic neurons."""
    if not any(layer.name == spec.layer and layer.kind == "concept" for layer in model.layers()):
        raise UnknownName(
            f"{spec.layer} of {spec.model} holds no synthetic neurons. Study it as a unit, or choose a synthetic model."
        )
    return SyntheticNeuron(spec, cast("ConceptModel", model), index, surroundings_of(settings, spec))
