"""The probability of a class as the system under study: used to search for biases.

Its activation is the class's probability on the model's scale: over all classes (softmax), or of the class alone
(sigmoid). Its masked image shows the region that speaks for the class. Both depend on the image alone. Loaded by
`lab.laboratory` through the registry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from workers.errors import UnknownName
from workers.lab.imaging import draw_map, map_in_parallel, mask_image, surroundings_of
from workers.protocols import Classifier, Exemplar, LabSettings, Response, UnitIndex, VisionModel, visible_part
from workers.record.systems import SystemSpec
from workers.systems.indexed import IndexedSystem

BRIGHT = 0.2
"""Share of a region map that stays bright: the places of strongest evidence."""
FAINT = 0.2
"""Minimum share of the strongest evidence for a bright place."""


class Logit(IndexedSystem[Classifier]):
    """A `Subject`; classes are indexed by their probabilities."""

    def respond(self, images: Sequence[Image]) -> list[Response]:
        """Return probability in [0, 1] and masked image for each image."""
        probabilities, maps = self._model.evidence(images, self.spec.unit)
        given = [(float(probability), *pair) for probability, *pair in zip(probabilities, images, maps, strict=True)]
        # Masking is slow in one thread, and the images are independent
        return map_in_parallel(lambda each: self._answer(*each), given)

    def _sorted(self, exemplars: list[Exemplar]) -> list[Exemplar]:
        # The index ranks by logit, and probabilities may rank otherwise
        return sorted(exemplars, key=lambda each: -each.activation)

    def _answer(self, probability: float, image: Image, region: NDArray[np.float32]) -> Response:
        """Keep bright where the evidence is above its own quantile and not faint."""
        if region.size == 1:  # does not tell where, so the image stays bright
            return Response(probability, image)
        # The larger bound: a flat map would be bright everywhere by its quantile alone
        threshold = max(float(np.quantile(region, 1 - BRIGHT)), FAINT * float(region.max()))
        part = visible_part(self._model, image.size)
        masked = mask_image(image, region, threshold, part, self._surroundings)
        return Response(probability, masked, draw_map(region, threshold, image.size, part))


def load(settings: LabSettings, spec: SystemSpec, model: VisionModel, index: UnitIndex) -> Logit:
    """Load the class that `spec` names. Raises UnknownName if its layer holds no classes or cannot locate one."""
    kinds = {layer.name: layer.kind for layer in model.layers()}
    # Both: a logit layer without evidence has no regions to show
    if kinds.get(spec.layer) != "logit" or not hasattr(model, "evidence"):
        raise UnknownName(
            f"{spec.layer} of {spec.model} gives no probabilities of classes. Study it as a unit instead."
        )
    return Logit(spec, cast("Classifier", model), index, surroundings_of(settings, spec))
