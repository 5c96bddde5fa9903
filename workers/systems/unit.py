"""One unit of a trained network as the system under study: a convolutional channel, an MLP neuron, a class logit.

Its activation is the spatial maximum of its map (paper, section 3.1). It does not search the dataset: an index, made by
`lab.exemplars`, is passed in. Loaded by `lab.laboratory` through the registry.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image

from workers.lab.imaging import draw_map, map_in_parallel, mask_image, surroundings_of
from workers.protocols import LabSettings, Response, Surroundings, UnitIndex, VisionModel, visible_part
from workers.record.systems import SystemSpec
from workers.systems.indexed import IndexedSystem


class Unit(IndexedSystem[VisionModel]):
    """A `Subject`."""

    def __init__(
        self,
        spec: SystemSpec,
        model: VisionModel,
        index: UnitIndex,
        batch_size: int,
        surroundings: Surroundings = "dim",
    ) -> None:
        super().__init__(spec, model, index, surroundings)
        self._batch_size = batch_size

    def respond(self, images: Sequence[Image]) -> list[Response]:
        """Return activation and masked image for each image."""
        threshold = self._index.unit(self.spec.layer, self.spec.unit).quantile
        found: list[NDArray[np.float32]] = []
        for start in range(0, len(images), self._batch_size):
            found.extend(self._read_maps(images[start : start + self._batch_size]).numpy(force=True))

        def answer(pair: tuple[Image, NDArray[np.float32]]) -> Response:
            image, activation_map = pair
            activation = float(activation_map.max()) + 0.0  # no negative zero
            if activation_map.size == 1:  # does not tell where, so the image stays bright
                return Response(activation, image)
            part = visible_part(self._model, image.size)
            masked = mask_image(image, activation_map, threshold, part, self._surroundings)
            return Response(activation, masked, draw_map(activation_map, threshold, image.size, part))

        return map_in_parallel(answer, list(zip(images, found, strict=True)))

    def _read_maps(self, images: Sequence[Image]) -> torch.Tensor:
        """Return the maps (batch, height, width)."""
        return self._model.maps(images, [self.spec.layer])[self.spec.layer][:, self.spec.unit]


def load(settings: LabSettings, spec: SystemSpec, model: VisionModel, index: UnitIndex) -> Unit:
    """Load the unit that `spec` names; its layer and number are checked by the laboratory."""
    return Unit(spec, model, index, settings.batch_size, surroundings_of(settings, spec))
