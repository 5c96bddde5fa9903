"""Toybox as a generator and an editor of images: prompts and instructions become scenes, scenes become pictures.

A picture carries its scene, so that an edit changes what it is asked to and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from workers.errors import ToolMisuse
from workers.lab.imaging import refused_picture
from workers.protocols import LabSettings, Picture, Progress, no_progress
from workers.toybox.world.edits import ABILITIES, apply_edit
from workers.toybox.world.prompts import PromptReading, read_prompt
from workers.toybox.world.render import render
from workers.toybox.world.scenes import Scene
from workers.toybox.world.words import describe_vocabulary


def load_generator(settings: LabSettings) -> ToyboxGenerator:  # noqa: ARG001  every factory takes the settings
    """Return the generator. It needs nothing from the installation."""
    return ToyboxGenerator()


def load_editor(settings: LabSettings) -> ToyboxEditor:  # noqa: ARG001  every factory takes the settings
    """Return the editor. It needs nothing from the installation."""
    return ToyboxEditor()


class ToyboxGenerator:
    """Draws exactly what a prompt says, or refuses it: ignoring a word would draw something else."""

    vocabulary = describe_vocabulary()

    def generate(self, prompts: Sequence[str], seeds: Sequence[int], progress: Progress = no_progress) -> list[Picture]:
        """See `protocols.ImageGenerator`. Refuses a prompt with words that toybox cannot draw."""
        pictures = []
        for done, (prompt, seed) in enumerate(zip(prompts, seeds, strict=True)):
            progress("drawing", done, len(prompts))
            reading = read_prompt(prompt, seed)
            # Refused as a whole: ignoring a word would draw something else than the prompt says
            pictures.append(refuse_reading(reading) or _picture(reading.scene))
        progress("drawing", len(prompts), len(prompts))
        return pictures


class ToyboxEditor:
    """Changes the scene behind a picture and draws it again."""

    vocabulary = ABILITIES

    def edit(
        self,
        originals: Sequence[Picture],
        instructions: Sequence[str],
        seeds: Sequence[int],
        progress: Progress = no_progress,
    ) -> list[Picture]:
        """See `protocols.ImageEditor`. A picture without a scene, or with a foreign one, is refused."""
        pictures = []
        for done, (original, instruction, seed) in enumerate(zip(originals, instructions, seeds, strict=True)):
            progress("editing", done, len(originals))
            pictures.append(_try_edit(original, instruction, seed))
        progress("editing", len(originals), len(originals))
        return pictures


def _try_edit(original: Picture, instruction: str, seed: int) -> Picture:
    if original.scene is None:
        return refused_picture(
            "it is mere pixels: toybox edits the scene behind an image, and this one has none. Edit images that "
            "tools.text2image, tools.edit_images or tools.dataset_exemplars gave"
        )
    try:
        edited = apply_edit(Scene.from_json(original.scene), instruction, seed)
    # A refusal is an image's result, so the others are still edited
    except ToolMisuse as refusal:
        return refused_picture(str(refusal).removesuffix("."))
    if edited.view:  # the edit may have changed their number and pose
        edited = replace(edited, view=replace(edited.view, count=None, pose=None))
    return _picture(edited)


def refuse_reading(reading: PromptReading) -> Picture | None:
    """Return the refusal of a prompt that was not fully understood; None for one that was."""
    if reading.ignored:
        return refused_picture(f"toybox cannot draw {', '.join(reading.ignored)}")
    return None if reading.understood else refused_picture("toybox understands nothing in it")


def _picture(scene: Scene) -> Picture:
    return Picture(render(scene), scene.to_json())
