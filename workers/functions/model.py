"""The functions as a model, so that one is found like a unit: a layer is a family, a unit's number is the seed.

Loaded by `lab.laboratory` through the registry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from workers.errors import RequestError
from workers.functions.families import FAMILIES
from workers.protocols import LabSettings, LayerInfo

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

FUNCTIONS: Mapping[str, int] = {"numeric": 1_000, "strings": 1_000, "concepts": 200, "relations": 75}
"""Of each family; FIND has as many."""
NO_IMAGES = (
    "A function takes no images: it is called with numbers, texts or words. Choose the task “Describe a function”."
)


class FunctionCollection:
    """A `VisionModel` in name: it has layers and units, and no maps."""

    name = "functions"
    revision = "2"
    """Changes whenever a key stands for another function, or there is another family."""

    def layers(self) -> Sequence[LayerInfo]:
        return [LayerInfo(family, family, "function", FUNCTIONS[family]) for family in FAMILIES]

    def maps(self, images: Sequence[Image], layers: Sequence[str]) -> Mapping[str, torch.Tensor]:
        """Raises RequestError."""
        del images, layers
        raise RequestError(NO_IMAGES)

    def about(self) -> str:
        return "functions that follow from their number alone, made after FIND (Schwettmann et al., NeurIPS 2023)"


def load(settings: LabSettings) -> FunctionCollection:
    """There is nothing to load: a function is made when it is asked for."""
    del settings
    return FunctionCollection()
