"""The toybox validation set: 3,000 scenes that no network was trained on, each drawn on first use.

Also fresh scenes like them, which are never exemplars, for trying and checking labels. Pictures are kept as PNG
files in the state folder, so that interrupted work continues. Used by the exemplar index through the registry.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal

from PIL import Image

from workers.files import atomic_write
from workers.lab.imaging import encode_png
from workers.protocols import Json, LabSettings, Picture, Progress, no_progress
from workers.toybox.world import splits
from workers.toybox.world.scenes import Scene

LENGTH = 3_000
FRESH = 20_000
"""Scenes of a held-out split. 50 of them show a label that one in 400 scenes shows."""
# Composing a scene is slow (see `label_reading`), and label checks ask for the same ones again
_find_scene = lru_cache(FRESH)(splits.scene)


def load(settings: LabSettings) -> ToyboxScenes:
    """Return the dataset. Nothing is drawn yet."""
    return ToyboxScenes(settings.state, min(settings.dataset_images or LENGTH, LENGTH))


class ToyboxScenes:
    """The dataset "toybox": pictures of 224 x 224 pixels with their scenes. See `protocols.Dataset`."""

    name = "toybox"

    def __init__(self, state: Path, length: int = LENGTH, split: splits.Split = "validation") -> None:
        pictures = splits.pictures_revision()
        # A shorter dataset is another one: its indexes must not be mistaken for the whole
        self.revision = pictures if length in (LENGTH, FRESH) else f"{pictures}-{length}"
        self._state = state
        self._split = split
        self._folder = state / "toybox" / f"{split}-{pictures}"
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Picture:
        """Return the picture and its scene. Raises IndexError outside 0 … length - 1."""
        if not 0 <= index < self._length:
            raise IndexError(f"There is no scene {index}: they are numbered 0 to {self._length - 1}.")
        scene = _find_scene(self._split, index)
        if index >= LENGTH:  # a GB of files if each was kept, and a rare label alone asks for them
            return Picture(_render(scene), scene.to_json())
        with Image.open(self._draw(index), formats=("PNG",)) as image:
            return Picture(image.convert("RGB"), scene.to_json())

    def scene(self, index: int) -> Json:
        """Return the scene of a picture without drawing it."""
        return _find_scene(self._split, index).to_json()

    def held_out(self, split: Literal["development", "probe"]) -> ToyboxScenes:
        """Return fresh scenes for a split, drawn like those of the dataset but never part of it.

        A small dataset has equally few.
        """
        return ToyboxScenes(self._state, FRESH if self._length == LENGTH else self._length, split)

    def prepare(self, progress: Progress = no_progress) -> None:
        """Draw every missing picture. An exception of `progress`, such as Cancelled, passes through."""
        for index in range(self._length):
            progress("drawing the toybox validation scenes", index, self._length)
            self._draw(index)
        progress("drawing the toybox validation scenes", self._length, self._length)

    def _draw(self, index: int) -> Path:
        """Return the file of a picture and draw it if it is missing. Other processes see the whole file or none."""
        path = self._folder / f"{index:04}.png"
        if not path.exists():
            # Drawing twice is harmless: the same scene gives the same bytes, and the write is atomic
            image = _render(_find_scene(self._split, index))
            with atomic_write(path) as file:
                file.write(encode_png(image))
        return path


def _render(scene: Scene) -> Image.Image:
    # Imported here because the renderer is needed only when a picture is missing
    from workers.toybox.world import render

    return render.render(scene, splits.NATIVE)
