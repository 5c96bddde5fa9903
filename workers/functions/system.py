"""A function of numbers, texts or words as the thing under study: it is called, and sees no image.

Loaded by `lab.laboratory` through the registry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from workers.errors import RequestError
from workers.functions.black_box import BlackBox, FunctionModel
from workers.functions.model import NO_IMAGES
from workers.protocols import Exemplar, LabSettings, Progress, Response, UnitIndex, no_progress
from workers.record.systems import OrdinaryActivations, SystemSpec

if TYPE_CHECKING:
    from PIL.Image import Image


class FunctionSubject:
    """A `Subject` that can be called."""

    def __init__(self, spec: SystemSpec, box: BlackBox) -> None:
        self.spec = spec
        self._box = box

    @property
    def domain(self) -> str:
        """The inputs that it takes, in words."""
        return self._box.truth.domain

    def call(self, inputs: Sequence[Any], number: int) -> list[Any]:
        """Return an output for each input, noise included; `number` counts the run's calls. Raises ToolMisuse."""
        return self._box.call(inputs, number)

    def respond(self, images: Sequence[Image]) -> list[Response]:
        """Raise RequestError."""
        del images
        raise RequestError(NO_IMAGES)

    def exemplars(self, progress: Progress = no_progress) -> Sequence[Exemplar]:
        """None: there are no images."""
        del progress
        return []

    def ordinary(self, progress: Progress = no_progress) -> OrdinaryActivations | None:
        """None: there are no images."""
        del progress
        return None


def load(settings: LabSettings, spec: SystemSpec, model: FunctionModel, index: UnitIndex) -> FunctionSubject:
    """Return the function that `spec` names. Raises UnknownName if there is none, MissingPart if it compares words and
    nothing here can."""
    del settings, index
    return FunctionSubject(spec, model.open(spec.layer, spec.unit))
