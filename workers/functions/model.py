"""The functions as a model, so that one is selected like a unit: a layer is a family, a unit's number is the seed.

Loaded by `lab.laboratory` through the registry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from workers.errors import MissingPart, RequestError
from workers.functions.black_box import BlackBox
from workers.functions.families import FAMILIES, FindNearness, open_function
from workers.protocols import LabSettings, LayerInfo
from workers.sentences import load_sentences

if TYPE_CHECKING:
    # Only for types: importing torch takes seconds, and functions do not need it
    import torch
    from PIL.Image import Image

FUNCTIONS: Mapping[str, int] = {"numeric": 1_000, "strings": 1_000, "concepts": 200, "relations": 75}
"""Of each family; FIND has as many."""
NO_IMAGES = (
    "A function takes no images: it is called with numbers, texts or words. Choose the task “Describe a function”."
)


class FunctionCollection:
    """A `VisionModel` in name: it has layers and units, and no maps. See `FunctionModel`."""

    name = "functions"
    revision = "2"
    """A text that changes if a key gives another function, or there is another family."""

    def __init__(self, find_nearness: FindNearness = load_sentences) -> None:
        self._find_nearness = find_nearness

    def open(self, layer: str, number: int) -> BlackBox:
        """Return the function of a seed, also of one that no unit has."""
        return open_function(f"{layer}:{number}", self._find_nearness)

    def find_trouble(self, layer: str, number: int) -> str:
        """Return what is missing where words are compared; "" if nothing is."""
        try:
            self.open(layer, number)
        except MissingPart as missing:
            return str(missing)
        return ""

    def list_defects(self, layer: str, number: int) -> list[str]:
        """None: these are made here."""
        del layer, number
        return []

    def layers(self) -> Sequence[LayerInfo]:
        return [LayerInfo(family, family, "function", FUNCTIONS[family]) for family in FAMILIES]

    def maps(self, images: Sequence[Image], layers: Sequence[str]) -> Mapping[str, torch.Tensor]:
        """Raise RequestError."""
        del images, layers
        raise RequestError(NO_IMAGES)

    def about(self) -> str:
        return "functions that follow from their number alone, made after FIND (Schwettmann et al., NeurIPS 2023)"


def load(settings: LabSettings) -> FunctionCollection:
    """There is nothing to load: a function is made when it is asked for."""
    return FunctionCollection(partial(load_sentences, settings.sentences))
