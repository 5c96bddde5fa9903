"""Toybox as a generator and an editor of images: prompts and instructions become scenes, scenes become pictures.

A picture carries its scene, so that an edit changes what it is told to and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from workers.errors import ToolMisuse, ToolRefused
from workers.protocols import LabSettings, Picture, Progress, silent
from workers.toybox.edits import edit, ignored
from workers.toybox.prompts import read
from workers.toybox.render import render
from workers.toybox.scenes import Scene
from workers.toybox.words import knows


def load_generator(settings: LabSettings) -> ToyboxGenerator:  # noqa: ARG001  every factory takes the settings
    """The generator. Needs nothing of the installation."""
    return ToyboxGenerator()


def load_editor(settings: LabSettings) -> ToyboxEditor:  # noqa: ARG001  every factory takes the settings
    """The editor. Needs nothing of the installation."""
    return ToyboxEditor()


class ToyboxGenerator:
    """Draws what it understands of a prompt; a remark says which words it did not."""

    def generate(self, prompts: Sequence[str], seeds: Sequence[int], progress: Progress = silent) -> list[Picture]:
        """See `protocols.ImageGenerator`. Raises ToolRefused for a prompt without a word that toybox knows."""
        readings = [read(prompt, seed) for prompt, seed in zip(prompts, seeds, strict=True)]
        for prompt, reading in zip(prompts, readings, strict=True):
            if not reading.understood:
                raise ToolRefused(f"Toybox understands nothing in the prompt {prompt[:80]!r}. {knows()}")
        pictures = []
        for done, reading in enumerate(readings):
            progress("drawing", done, len(readings))
            pictures.append(_picture(reading.scene, reading.ignored))
        progress("drawing", len(readings), len(readings))
        return pictures


class ToyboxEditor:
    """Changes the scene behind a picture and draws it again."""

    def edit(
        self,
        originals: Sequence[Picture],
        instructions: Sequence[str],
        seeds: Sequence[int],
        progress: Progress = silent,
    ) -> list[Picture]:
        """See `protocols.ImageEditor`. Raises ToolMisuse for a picture without a scene, or a scene that is not ours."""
        pictures = []
        for done, (original, instruction, seed) in enumerate(zip(originals, instructions, seeds, strict=True)):
            progress("editing", done, len(originals))
            if original.scene is None:
                raise ToolMisuse(
                    f"Image {done + 1} is mere pixels: toybox edits the scene behind an image, and this one has none. "
                    "Edit images that tools.text2image, tools.edit_images or tools.dataset_exemplars gave."
                )
            scene = edit(Scene.from_json(original.scene), instruction, seed)
            pictures.append(_picture(scene, ignored(instruction)))
        progress("editing", len(originals), len(originals))
        return pictures


def _picture(scene: Scene, ignored: Sequence[str]) -> Picture:
    remark = f"toybox did not understand: {', '.join(ignored)}" if ignored else ""
    return Picture(render(scene), scene.to_json(), remark)
