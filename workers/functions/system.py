"""A function of numbers, texts or words as the thing under study: it is called, and sees no image.

Loaded by `lab.laboratory` through the registry.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from workers.errors import RequestError
from workers.functions.families import open_function
from workers.functions.model import NO_IMAGES
from workers.protocols import Exemplar, LabSettings, Progress, Response, UnitIndex, VisionModel, no_progress
from workers.record.systems import OrdinaryActivations, SystemSpec
from workers.sentences import load_sentences

if TYPE_CHECKING:
    from PIL.Image import Image


class FunctionSubject:
    """A `Subject` that can be called."""

    def __init__(self, spec: SystemSpec, sentences: str = "") -> None:
        self.spec = spec
        self._box = open_function(f"{spec.layer}:{spec.unit}", partial(load_sentences, sentences))

    @property
    def domain(self) -> str:
        """The inputs that it takes, in words."""
        return self._box.truth.domain

    def call(self, inputs: Sequence[Any], number: int) -> list[Any]:
        """An output for each input, noise included; `number` counts the run's calls. Raises ToolMisuse."""
        return self._box.call(inputs, number)

    def respond(self, images: Sequence[Image]) -> list[Response]:
        """Raises RequestError."""
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


def load(settings: LabSettings, spec: SystemSpec, model: VisionModel, index: UnitIndex) -> FunctionSubject:
    """The function that `spec` names. Raises UnknownName if there is none, MissingPart if it compares words and nothing
    here can."""
    del model, index
    return FunctionSubject(spec, settings.sentences)
