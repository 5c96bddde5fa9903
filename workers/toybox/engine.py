"""Toybox as a game engine: prompts become scenes, which are drawn from any side, at any distance and in any light.

If the settings name a folder of `.glb` files, their toys are added. A view in which a toy cannot be seen is refused,
so that the scene of an image says what it shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workers.errors import ToolMisuse
from workers.lab.imaging import refused_picture
from workers.protocols import LabSettings, Picture, Progress, no_progress
from workers.toybox.glb.folder import ToyFolder
from workers.toybox.images import refuse_reading
from workers.toybox.world.prompts import read_prompt
from workers.toybox.world.render import render, render_masks
from workers.toybox.world.scenes import OWN_COLOUR, Scene
from workers.toybox.world.surfaces import AddedToys
from workers.toybox.world.viewing import arrange, find_eye
from workers.toybox.world.words import describe_vocabulary, join_words

_MASK_SIZE = 112
"""Width in pixels of the masks that measure visibility."""
_MIN_PIXELS = 12
_MIN_VISIBLE = 0.25
"""Minimum share of a toy that other toys must leave visible."""
_MIN_INSIDE = 0.6
"""Share of a toy's rectangle that must be in the picture."""


def load(settings: LabSettings) -> ToyboxEngine:
    """Return the engine. Files of toys are read when they are first needed."""
    return ToyboxEngine(ToyFolder(settings.game_models))


class ToyboxEngine:
    """Draws what `ToyboxGenerator` draws, from any view; at the usual one the pixels are the same.

    See `protocols.GameEngine`.
    """

    def __init__(self, folder: ToyFolder) -> None:
        self._folder = folder

    @property
    def vocabulary(self) -> str:
        return " ".join(filter(None, [describe_vocabulary(), self.extras]))

    @property
    def extras(self) -> str:
        nouns = sorted(self._folder.read().toys)
        if not nouns:
            return ""
        return (
            f"tools.game_engine, and nothing else, also knows {join_words(nouns)}: each in its own colours, or in "
            f"shades of a colour that the prompt names. For example: one {nouns[0]} on grass."
        )

    @property
    def problems(self) -> tuple[str, ...]:
        return self._folder.latest.problems

    def find_problems(self) -> tuple[str, ...]:
        self._folder.read()
        return self.problems

    def render(
        self,
        prompts: Sequence[str],
        seeds: Sequence[int],
        parameters: Sequence[Mapping[str, float]],
        progress: Progress = no_progress,
    ) -> list[Picture]:
        """See `protocols.GameEngine`."""
        # Read once: the folder may change, and all prompts of a call must know the same toys
        pictures, added = [], self._folder.read().toys
        for done, (prompt, seed, given) in enumerate(zip(prompts, seeds, parameters, strict=True)):
            progress("drawing", done, len(prompts))
            pictures.append(_draw(prompt, seed, given, added))
        progress("drawing", len(prompts), len(prompts))
        return pictures


def _draw(prompt: str, seed: int, given: Mapping[str, float], added: AddedToys) -> Picture:
    count = given.get("count")
    try:
        # A count arrives as a float, like all parameters
        reading = read_prompt(prompt, seed, None if count is None else int(count), added)
    except ToolMisuse as refusal:
        return refused_picture(str(refusal).removesuffix("."))
    if refused := refuse_reading(reading):
        return refused
    scene = arrange(reading.scene, given)
    # At its usual place the camera sees what the generator draws, as the generator draws it
    is_new = scene.view is not None and not scene.view.is_usual
    if (is_new or scene.added) and (unseen := _find_unseen(scene)):
        return refused_picture(f"{unseen} from there. Try another camera, distance, size or seed")
    return Picture(render(scene), scene.to_json())


def _find_unseen(scene: Scene) -> str:
    """Say which toy cannot be seen and why; "" if all can."""
    # Once with all toys, then each alone: the difference is what others hide
    together = render_masks(scene, _MASK_SIZE)
    for index, thing in enumerate(scene.things):
        name = f"the {thing.noun}" if thing.colour == OWN_COLOUR else f"the {thing.colour} {thing.noun}"
        # Cheap geometry first: it needs no drawing
        if _share_inside(scene, index) < _MIN_INSIDE:
            return f"{name} is not wholly in the picture"
        # Masks number the things from 1; 0 is the background
        alone = int((render_masks(scene, _MASK_SIZE, index) == index + 1).sum())
        seen = int((together == index + 1).sum())
        if seen < max(_MIN_PIXELS, _MIN_VISIBLE * alone):
            # Too small even alone: no other toy is to blame
            return f"{name} is hidden behind another toy" if alone >= _MIN_PIXELS else f"{name} is too small"
    return ""


def _share_inside(scene: Scene, index: int) -> float:
    """Return the share of the rectangle around a toy that is inside the picture, 0 to 1."""
    assert scene.view is not None, "an engine's scene has a view"
    thing, scale, foot, eye = scene.things[index], scene.scale(index), scene.foot(index), find_eye(scene.view)
    shape = scene.shape(index)
    reach, top = shape.radius * scale, foot + shape.height * scale
    corners = [
        eye.project(thing.x + right * reach, thing.y + away * reach, z)
        for right in (-1, 1)
        for away in (-1, 1)
        for z in (foot, top)
    ]
    share = 1.0
    for places in zip(*corners, strict=True):
        low, high = min(places), max(places)
        # Clipped to the picture, which goes from 0 to 1 in both directions
        share *= max(0.0, min(high, 1.0) - max(low, 0.0)) / (high - low)
    return share
