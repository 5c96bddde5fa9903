"""Toybox's own prompt writer and image judge, based on the grammar of its labels and the scenes of its pictures.

Both know only the label. Loaded through the registry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from workers.errors import RequestError, ToolMisuse
from workers.protocols import LabSettings, Picture, Progress, WrittenPrompts, no_progress
from workers.record.label_checks import LabelReading
from workers.toybox.label_reading import ReadLabel, describe_reading, read_label
from workers.toybox.world import splits
from workers.toybox.world.scenes import Scene

MIN_INSIDE = 0.25
"""A part shows a thing if at least this share of the part is filled by it, or this share of the thing is in the
part."""


def load_writer(settings: LabSettings) -> ToyboxPromptWriter:  # noqa: ARG001  every factory takes the settings
    """Return the writer. It needs nothing from the installation."""
    return ToyboxPromptWriter()


def load_judge(settings: LabSettings) -> ToyboxJudge:  # noqa: ARG001  every factory takes the settings
    """Return the judge. It needs nothing from the installation."""
    return ToyboxJudge()


class ToyboxPromptWriter:
    """See `protocols.PromptWriter`. Positive prompts are spread over the label's alternatives and vary in everything
    else."""

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

    def judge_parts(
        self,
        label: str,
        pictures: Sequence[Picture],
        parts: Sequence[NDArray[np.bool_]],
        progress: Progress = no_progress,
    ) -> list[float | None]:
        """See `protocols.PartJudge`: whether a thing that the label describes is seen in the part.

        What the thing is on or beside, ground and light are those of the whole scene.
        """
        read = read_label(label)
        if not read.about_things:
            raise RequestError(
                f"The label {label!r} cannot be looked for in parts of images: it speaks of ground or light alone, "
                "which are everywhere. Name things."
            )
        answers = []
        for done, (picture, part) in enumerate(zip(pictures, parts, strict=True)):
            progress("Judging what parts of images show", done, len(pictures))
            answers.append(_shows_in(read, picture, part))
        return answers


def _shows(read: ReadLabel, picture: Picture) -> float | None:
    """Return 1 or 0; None for an image without a scene."""
    try:
        return float(read.is_present(Scene.from_json(picture.scene)))
    # `Scene.from_json` also refuses None, so an image without a scene comes here too
    except ToolMisuse:
        return None


def _shows_in(read: ReadLabel, picture: Picture, part: NDArray[np.bool_]) -> float | None:
    """Return 1 or 0; None for an image without a scene."""
    try:
        scene = Scene.from_json(picture.scene)
    except ToolMisuse:
        return None
    if not (shown := read.find_shown(scene)):
        return 0.0
    from workers.toybox.world.render import render_masks  # draws, and most that judge never do

    things = render_masks(scene, max(part.shape))
    seen = [(things == place + 1) for place in shown]
    return float(any(_is_inside(each, part) for each in seen))


def _is_inside(thing: NDArray[np.bool_], part: NDArray[np.bool_]) -> bool:
    both = int((thing & part).sum())
    # Of the smaller one: a small thing in a large part counts, and a small part filled by a thing
    return both > 0 and both >= MIN_INSIDE * min(int(thing.sum()), int(part.sum()))
