"""Labels a unit of toybox once, from its masked exemplars alone and without an experiment, as MILAN does.

toybox-eyes say what the bright regions show; what the exemplars share beyond chance is the label. The baseline that
experiments must beat. Loaded through the registry.
"""

from __future__ import annotations

from collections.abc import Sequence

from PIL.Image import Image

from workers.protocols import LabSettings
from workers.toybox import describer
from workers.toybox.scientist.view import suggest_concepts
from workers.toybox.world import prompts


def load(settings: LabSettings) -> ToyboxOneShot:
    """The labeller with its committed weights. Raises MachineryError if they are missing."""
    return ToyboxOneShot(settings)


class ToyboxOneShot:
    """See `protocols.OneShotLabeller`."""

    def __init__(self, settings: LabSettings) -> None:
        self._describer = describer.load(settings)

    def label(self, masked: Sequence[Image]) -> str:
        """The most surprising concept that they share; "" if there is none."""
        readings = [prompts.read_prompt(text, 0) for text in self._describer.describe(masked)]
        shared = suggest_concepts([each.scene for each in readings if each.understood])
        return shared[0][0].phrase() if shared else ""
