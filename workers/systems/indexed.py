"""The common part of systems whose exemplars are found through an index of a dataset."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from PIL.Image import Image

from workers.protocols import Exemplar, Progress, Response, Surroundings, UnitIndex, VisionModel, no_progress
from workers.record.systems import OrdinaryActivations, SystemSpec

Model = TypeVar("Model", bound=VisionModel)


class IndexedSystem(ABC, Generic[Model]):
    """A `Subject` that is one unit of a model. Safe for threads: the model holds its own lock for each batch."""

    def __init__(self, spec: SystemSpec, model: Model, index: UnitIndex, surroundings: Surroundings = "dim") -> None:
        self.spec = spec
        self._model = model
        self._index = index
        self._surroundings = surroundings
        self._lock = threading.Lock()
        self._exemplars: list[Exemplar] | None = None

    @abstractmethod
    def respond(self, images: Sequence[Image]) -> list[Response]:
        """Return activation and masked image for each image."""

    def exemplars(self, progress: Progress = no_progress) -> Sequence[Exemplar]:
        """Return the exemplars, best first by this system's own answer; empty if no image activates it more than
        others."""
        # Outside the lock: indexing may take long
        positions = self._index.unit(self.spec.layer, self.spec.unit, progress).positions[: self._most_exemplars()]
        with self._lock:
            if self._exemplars is None:
                pictures = [self._index.picture(position) for position in positions]
                measured = zip(self.respond([each.image for each in pictures]), pictures, positions, strict=True)
                self._exemplars = self._sorted(
                    [Exemplar(each.activation, picture, each.masked, at, each.map) for each, picture, at in measured]
                )
            return self._exemplars

    def _most_exemplars(self) -> int | None:
        """Return the option "exemplars" of the system; None for all that the index keeps."""
        asked = self.spec.options.get("exemplars")
        # Options are plain JSON of a form or an import
        return asked if isinstance(asked, int) and asked > 0 else None

    def ordinary(self, progress: Progress = no_progress) -> OrdinaryActivations | None:
        """Return the activations of ordinary images of the dataset."""
        return self._index.unit(self.spec.layer, self.spec.unit, progress).ordinary

    def _sorted(self, exemplars: list[Exemplar]) -> list[Exemplar]:
        """Sort the exemplars: the order of the index, unless a system overrides it."""
        return exemplars
