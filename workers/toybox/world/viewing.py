"""Views of the game engine: turns, scales and counts the things of a scene, and places the camera.

Pure arithmetic. World and picture units are those of `stage`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.toybox.world import stage
from workers.toybox.world.scenes import Scene, Thing, View

Floats = NDArray[np.float64]
_MIDDLE = 0.5
"""Height of the point that stays in place when the camera moves."""
_LENS = stage.VIEW / stage.DISTANCE
"""Width of the picture at distance 1."""
_FARTHEST = 60.0


@dataclass(frozen=True)
class Eye:
    """Position of the camera and its downward pitch in radians. It looks along y."""

    x: float
    y: float
    z: float
    pitch: float

    def project(self, x: float, y: float, z: float) -> tuple[float, float]:
        """Return where a point of the world appears in the picture: (u, v)."""
        away, rise = y - self.y, z - self.z
        depth = max(1e-6, away * math.cos(self.pitch) - rise * math.sin(self.pitch))
        up = away * math.sin(self.pitch) + rise * math.cos(self.pitch)
        return 0.5 + (x - self.x) / depth / _LENS, 0.5 - up / depth / _LENS

    def find_ground(self, u: Floats, v: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Return the point (x, y) of the ground at positions of the picture, and where there is ground and not sky."""
        across, up = (u - 0.5) * _LENS, (0.5 - v) * _LENS
        away = math.cos(self.pitch) + up * math.sin(self.pitch)
        rise = up * math.cos(self.pitch) - math.sin(self.pitch)
        reach = np.where(rise < -1e-6, -self.z / np.minimum(rise, -1e-6), _FARTHEST)
        x, y = self.x + reach * across, self.y + reach * away
        is_ground = (rise < -1e-6) & (y < stage.FAR_EDGE)
        return np.clip(x, -_FARTHEST, _FARTHEST), np.clip(y, -_FARTHEST, _FARTHEST), is_ground


def rotate(x: Any, y: Any, degrees: float) -> tuple[Any, Any]:
    """Return a place turned about the vertical, counter-clockwise from above. Whole turns leave it exactly
    unchanged."""
    if not degrees % 360:
        return x, y
    sine, cosine = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    return x * cosine - y * sine, x * sine + y * cosine


def find_eye(view: View) -> Eye:
    """Return the camera: the usual position, turned upwards about the point of the view, then moved nearer or
    further."""
    x, y, z = stage.TARGET
    usual = Eye(x, y - stage.DISTANCE * math.cos(stage.PITCH), z + stage.DISTANCE * math.sin(stage.PITCH), stage.PITCH)
    if view.is_unmoved:
        return usual
    back, up = rotate(view.about[1] - usual.y, usual.z - _MIDDLE, view.elevation - View().elevation)
    scale = view.distance / stage.DISTANCE
    return Eye(
        view.about[0] + scale * (usual.x - view.about[0]),
        view.about[1] - scale * back,
        _MIDDLE + scale * up,
        math.radians(view.elevation),
    )


def arrange(scene: Scene, parameters: Mapping[str, float]) -> Scene:
    """Return the scene with the given parameters. Without any, its things do not move."""
    given = {name: value for name, value in parameters.items() if name != "count"}
    count = parameters.get("count")
    about = _find_middle(scene.things)
    view = View(**given, count=None if count is None else int(count), about=about)
    things = scene.things
    if view.pose is not None:
        facing = [scene.shape(index).facing for index in range(len(things))]
        things = tuple(replace(each, turn=_wrap(usual + view.pose)) for each, usual in zip(things, facing, strict=True))
    if view.camera % 360:
        things = tuple(_turn(each, about, -view.camera) for each in things)
    arranged = replace(scene, things=things, view=view)
    if view.size == 1.0:
        return arranged
    return replace(arranged, things=tuple(_spread(arranged, index, view.size) for index in range(len(things))))


def _find_middle(things: Sequence[Thing]) -> tuple[float, float]:
    """Return the mean position of what is on the ground; the middle of the stage if nothing is."""
    places = [(each.x, each.y) for each in things if each.on is None]
    if not places:
        return 0.0, 0.0
    return round(fmean(x for x, _ in places), 3), round(fmean(y for _, y in places), 3)


def _turn(thing: Thing, about: tuple[float, float], degrees: float) -> Thing:
    x, y = rotate(thing.x - about[0], thing.y - about[1], degrees)
    return replace(thing, x=round(x + about[0], 3), y=round(y + about[1], 3), turn=_wrap(thing.turn + degrees))


def _spread(scene: Scene, index: int, size: float) -> Thing:
    """Return a thing of an enlarged scene: what is beside the middle of a stack moves further out."""
    thing = foot = scene.things[index]
    while foot.on is not None:
        foot = scene.things[foot.on]
    x, y = foot.x + (thing.x - foot.x) * size, foot.y + (thing.y - foot.y) * size
    return replace(thing, x=round(x, 3), y=round(y, 3))


def _wrap(degrees: float) -> float:
    """Return the same turn, from -180 to 180 degrees."""
    return round((degrees + 180.0) % 360.0 - 180.0, 1)
