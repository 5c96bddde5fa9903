"""A circuit as the system under study: units and latents of one network as one.

Its activation is the mean over its members of activation / threshold; `lab/circuits.py` says why. The masked image is
bright where the combined map (the mean over the members of map / threshold, on their finest grid) is above its own 0.99
quantile.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow
from PIL.Image import Image

from workers.lab.imaging import draw_map, map_in_parallel, mask_image, surroundings_of
from workers.protocols import (
    CircuitResponse,
    Exemplar,
    LabSettings,
    MemberModel,
    Progress,
    Response,
    Surroundings,
    UnitIndex,
    no_progress,
    visible_part,
)
from workers.record.circuits import MAP_LAYER, CircuitMember
from workers.record.systems import OrdinaryActivations, SystemSpec
from workers.systems.indexed import IndexedSystem

_MAX_SIDE = 14
"""Side of the map that programs are given, in cells."""


class CircuitSystem(IndexedSystem[MemberModel]):
    """A `CircuitSubject`."""

    def __init__(
        self,
        spec: SystemSpec,
        model: MemberModel,
        index: UnitIndex,
        batch_size: int,
        surroundings: Surroundings = "dim",
    ) -> None:
        super().__init__(spec, model, index, surroundings)
        self._batch_size = batch_size

    @property
    def members(self) -> Sequence[CircuitMember]:
        return self._model.members

    def find_thresholds(self) -> list[float]:
        return [float(each) for each in self._model.find_thresholds()]

    def respond(self, images: Sequence[Image]) -> list[Response]:
        """Return activation and masked image for each image."""
        return [each.response for each in self.respond_members(images)]

    def respond_members(self, images: Sequence[Image]) -> list[CircuitResponse]:
        """Return the same, with the activation of each member and the combined map."""
        thresholds = self._model.find_thresholds()
        bright = self._index.unit(MAP_LAYER, 0).quantile
        found: list[tuple[NDArray[np.float32], NDArray[np.float32]]] = []
        # In batches, since every member's maps are in memory at once
        for start in range(0, len(images), self._batch_size):
            measured = self._model.measure_members(images[start : start + self._batch_size])
            found.extend(zip(measured.activations, measured.maps, strict=True))

        def answer(pair: tuple[Image, tuple[NDArray[np.float32], NDArray[np.float32]]]) -> CircuitResponse:
            image, (activations, combined) = pair
            # Not the maximum of the combined map: members may respond in different places.
            activation = float((activations / thresholds).mean()) + 0.0  # no negative zero
            response = Response(activation, image)
            if combined.size > 1:  # else the map does not tell where, so the image stays bright
                part = visible_part(self._model, image.size)
                masked = mask_image(image, combined, bright, part, self._surroundings)
                response = Response(activation, masked, draw_map(combined, bright, image.size, part))
            return CircuitResponse(response, tuple(map(float, activations)), _reduce_map(combined))

        return map_in_parallel(answer, list(zip(images, found, strict=True)))

    def exemplars(self, progress: Progress = no_progress) -> Sequence[Exemplar]:
        """See `IndexedSystem.exemplars`."""
        # The members' layers first, so that the progress of their indexing is reported.
        self._model.find_thresholds(progress)
        return super().exemplars(progress)

    def ordinary(self, progress: Progress = no_progress) -> OrdinaryActivations | None:
        """Return the activations of ordinary images of the dataset."""
        self._model.find_thresholds(progress)
        return super().ordinary(progress)


def _reduce_map(combined: NDArray[np.float32]) -> list[list[float]]:
    """Reduce the map for programs: means over parts of the finer one."""
    rows, columns = (min(each, _MAX_SIDE) for each in combined.shape)
    small = Pillow.fromarray(combined).resize((columns, rows), Pillow.Resampling.BOX)
    # Four digits are enough for programs, and shorten the message
    return [[round(float(value), 4) for value in row] for row in np.asarray(small)]


def load(settings: LabSettings, spec: SystemSpec, model: MemberModel, index: UnitIndex) -> CircuitSystem:
    """Load the circuit that `spec` names; its members are checked by the laboratory."""
    return CircuitSystem(spec, model, index, settings.batch_size, surroundings_of(settings, spec))
