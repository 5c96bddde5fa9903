"""One unit of a trained network: a convolutional channel, an MLP neuron, a class logit.

Its activation is the spatial maximum of its map (paper, section 3.1). It does not search the dataset: an index, made
by `lab.exemplars`, is passed in. Loaded by `lab.laboratory` through the registry.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from PIL.Image import Image

from workers.lab.imaging import in_parallel, mask_image, surroundings_of
from workers.protocols import (
    WHOLE_IMAGE,
    Box,
    Exemplar,
    LabSettings,
    Progress,
    Response,
    Surroundings,
    UnitIndex,
    UnitRecord,
    VisionModel,
    no_progress,
    visible_part,
)
from workers.record.systems import OrdinaryActivations, SystemSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Unit:
    """A `Subject`. Safe for threads: the model holds its own lock for each batch."""

    def __init__(
        self,
        spec: SystemSpec,
        model: VisionModel,
        index: UnitIndex,
        batch_size: int,
        surroundings: Surroundings = "dim",
    ) -> None:
        self.spec = spec
        self._model = model
        self._index = index
        self._batch_size = batch_size
        self._surroundings = surroundings
        self._lock = threading.Lock()
        self._exemplars: list[Exemplar] | None = None

    def respond(self, images: Sequence[Image]) -> list[Response]:
        """Activation and masked image for each image."""
        threshold = self._index.unit(self.spec.layer, self.spec.unit).quantile
        pairs = list(zip(images, self._maps(images), strict=True))
        return in_parallel(
            lambda pair: response(*pair, threshold, visible_part(self._model, pair[0].size), self._surroundings), pairs
        )

    def exemplars(self, progress: Progress = no_progress) -> Sequence[Exemplar]:
        """Best first; empty if no image of the dataset activates the unit."""
        record = self._index.unit(self.spec.layer, self.spec.unit, progress)
        with self._lock:
            if self._exemplars is None:
                self._exemplars = self._measure(record)
        return self._exemplars

    def ordinary(self, progress: Progress = no_progress) -> OrdinaryActivations | None:
        """What ordinary images of the dataset get."""
        return self._index.unit(self.spec.layer, self.spec.unit, progress).ordinary()

    def _measure(self, record: UnitRecord) -> list[Exemplar]:
        pictures = [self._index.picture(position) for position in record.positions]
        responses = self.respond([picture.image for picture in pictures])
        return [
            Exemplar(response.activation, picture, response.masked, position)
            for response, picture, position in zip(responses, pictures, record.positions, strict=True)
        ]

    def _maps(self, images: Sequence[Image]) -> list[NDArray[np.float32]]:
        """The unit's map for each image, (h, w)."""
        layer = self.spec.layer
        found: list[NDArray[np.float32]] = []
        for start in range(0, len(images), self._batch_size):
            maps = self._model.maps(images[start : start + self._batch_size], [layer])[layer]
            found.extend(maps[:, self.spec.unit].numpy(force=True))  # (batch, units, h, w) -> (batch, h, w)
        return found


def response(
    image: Image,
    activation_map: NDArray[np.floating[Any]],
    threshold: float,
    part: Box = WHOLE_IMAGE,
    surroundings: Surroundings = "dim",
) -> Response:
    """Activation and masked image, from a map that covers `part` of the image.

    A map of a single value says nothing of where, so the image stays bright.
    """
    activation = float(activation_map.max()) + 0.0  # no negative zero
    if activation_map.size == 1:
        return Response(activation, image)
    return Response(activation, mask_image(image, activation_map, threshold, part, surroundings))


def load(settings: LabSettings, spec: SystemSpec, model: VisionModel, index: UnitIndex) -> Unit:
    """The unit that `spec` names; its layer and number are checked by the laboratory."""
    return Unit(spec, model, index, settings.batch_size, surroundings_of(settings, spec))
