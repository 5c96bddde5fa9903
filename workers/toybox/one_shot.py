"""Label a unit of toybox once, from its masked exemplars alone and without experiments, as MILAN does.

toybox-describer says what the bright regions show and what is around them. The label is what the exemplars share
beyond chance: a few alternatives, or a thing with a condition, in the form that the agent uses. Experiments must
beat this baseline. Loaded through the registry.
"""

from __future__ import annotations

from collections.abc import Sequence

from PIL.Image import Image

from workers.protocols import LabSettings
from workers.toybox import describer
from workers.toybox.scientist.view import read_around, suggest_concepts, suggest_label
from workers.toybox.world import prompts
from workers.toybox.world.concepts import phrase_label


def load(settings: LabSettings) -> ToyboxOneShot:
    """Return the labeller with its committed weights. Raises MachineryError if they are missing."""
    return ToyboxOneShot(settings)


class ToyboxOneShot:
    """See `protocols.OneShotLabeller`."""

    def __init__(self, settings: LabSettings) -> None:
        self._describer = describer.load(settings)

    def label(self, masked: Sequence[Image]) -> str:
        """Return as few alternatives as cover most of them, else the most surprising concept; "" if they share
        nothing.
        """
        readings = [prompts.read_prompt(text, 0) for text in self._describer.describe(masked)]
        scenes = [each.scene for each in readings if each.understood]
        if label := suggest_label(scenes, read_around(self._describer.summarize(masked))):
            return phrase_label(label)
        # No covering label: the most surprising concept is better than none
        return phrase_label([concept for concept, _ in suggest_concepts(scenes)[:1]])
