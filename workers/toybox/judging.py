"""Toybox's own writer of prompts and judge of images, based on the grammar of its labels and the scenes of its
pictures.

Both know a label alone. Loaded through the registry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from workers.errors import ToolMisuse
from workers.protocols import LabSettings, Picture, Progress, WrittenPrompts, no_progress
from workers.record.label_checks import LabelReading
from workers.toybox.label_reading import ReadLabel, describe_reading, read_label
from workers.toybox.world import splits
from workers.toybox.world.scenes import Scene


def load_writer(settings: LabSettings) -> ToyboxPromptWriter:  # noqa: ARG001  every factory takes the settings
    """The writer. Needs nothing of the installation."""
    return ToyboxPromptWriter()


def load_judge(settings: LabSettings) -> ToyboxJudge:  # noqa: ARG001  every factory takes the settings
    """The judge. Needs nothing of the installation."""
    return ToyboxJudge()


class ToyboxPromptWriter:
    """See `protocols.PromptWriter`. Positive prompts are spread over the label's alternatives, and vary in all else."""

    name = "toybox's grammar"

    def write(self, label: str, count: int, seed: int) -> WrittenPrompts:
        read = read_label(label)
        return WrittenPrompts(tuple(read.positive_prompts(count, seed)), tuple(read.neutral_prompts(count, seed)))


class ToyboxJudge:
    """See `protocols.PresenceJudge`."""

    name = "toybox's scenes"
    revision = splits.pictures_revision()
    kind: Literal["exact"] = "exact"

    def read(self, label: str) -> LabelReading:
        return describe_reading(label)

    def judge(self, label: str, pictures: Sequence[Picture], progress: Progress = no_progress) -> list[float | None]:
        del progress
        read = read_label(label)
        return [_shows(read, picture) for picture in pictures]


def _shows(read: ReadLabel, picture: Picture) -> float | None:
    """None for mere pixels."""
    try:
        return float(read.is_present(Scene.from_json(picture.scene)))
    except ToolMisuse:
        return None
