"""Describes nothing: for images that no network here was made for. A wrong description is worse than none.

Loaded through the registry, where an agent that does not see has tools that draw photographs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from PIL.Image import Image

from workers.errors import ToolRefused
from workers.protocols import Json, LabSettings

REASON = (
    "No model here can describe photographs: the toolset diffusion has no network for it. Log the "
    "images and look at them instead. A vision-language model as the agent describes images itself."
)


def load(settings: LabSettings) -> NoDescriber:  # noqa: ARG001  every factory takes the settings
    """It needs nothing of the installation."""
    return NoDescriber()


class NoDescriber:
    """See `protocols.Describer`."""

    def refusal(self, scene: Json) -> str:  # noqa: ARG002  it describes none at all
        return REASON

    def describe(self, images: Sequence[Image]) -> NoReturn:
        """Raise ToolRefused."""
        raise ToolRefused(f"{len(images)} images are not described. {REASON}")

    def summarize(self, images: Sequence[Image]) -> NoReturn:
        """Raise ToolRefused."""
        raise ToolRefused(f"{len(images)} images are not summarized. {REASON}")
