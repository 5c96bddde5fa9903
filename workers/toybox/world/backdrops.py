"""Backdrops: what is behind the toys, a ground up to its far edge and a sky above it. Pure NumPy and Pillow.

A ground is a function from world coordinates (x, y), in arrays, to colour; it is drawn once for each picture size,
wider than the picture, and each backdrop is a window into that strip, mirrored or not. Called by `render`, under its
lock.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.toybox.world import stage
from workers.toybox.world.scenes import BACKDROPS, Scene, View
from workers.toybox.world.viewing import find_eye, rotate

Floats = NDArray[np.float64]
Rgb = tuple[float, float, float]

_WIDER = 1.5
"""Width of a strip in pictures."""
_FINER = 3
"""Strips are drawn this much larger, then averaged."""


@dataclass(frozen=True)
class Light:
    """How a light colours the ground (a factor) and the sky (zenith and horizon)."""

    ground: Rgb
    zenith: Rgb
    horizon: Rgb
    orb: Rgb
    """Colour of the sun or the moon."""
    glow: float
    """How far its light spreads in the sky, in picture units."""


LIGHT: Mapping[str, Light] = {
    "day": Light((1.0, 1.0, 1.0), (0.36, 0.62, 0.93), (0.80, 0.91, 0.98), (1.0, 1.0, 0.94), 0.10),
    "sunset": Light((1.0, 0.80, 0.67), (0.44, 0.30, 0.52), (1.0, 0.60, 0.28), (1.0, 0.90, 0.52), 0.16),
    "night": Light((0.36, 0.37, 0.46), (0.03, 0.04, 0.12), (0.10, 0.14, 0.30), (0.93, 0.94, 0.86), 0.05),
}


def backdrop(ground: str, light: str, view: int, size: int) -> NDArray[np.float32]:
    """A picture without things: (size, size, 3), from 0 to 1. `view` is from 0 to `BACKDROPS` - 1."""
    strip = _strip(ground, light, size)
    half = BACKDROPS // 2
    start = (strip.shape[1] - size) * (view % half) // (half - 1)
    window = strip[:, start : start + size]
    return window[:, ::-1] if view >= half else window


def backdrop_from(scene: Scene, size: int) -> NDArray[np.float32]:
    """The backdrop of a scene as its view sees it."""
    view = scene.view
    if view is None or (view.is_unmoved and not view.camera % 360):
        return backdrop(scene.ground, scene.light, scene.backdrop, size)
    place = replace(view, light=1.0, size=1.0, count=None, pose=None)
    return _seen_from(scene.ground, scene.light, scene.backdrop, place, size)


@lru_cache(maxsize=32)
def _seen_from(ground: str, light: str, number: int, view: View, size: int) -> NDArray[np.float32]:
    """As `backdrop`, drawn anew for one place of the camera: the plane is the same, seen from elsewhere."""
    half, start = BACKDROPS // 2, (round(size * _WIDER) - size) * (number % (BACKDROPS // 2)) // (BACKDROPS // 2 - 1)
    shift, side = start / size - (_WIDER - 1) / 2, -1 if number >= half else 1
    fine = (np.arange(size * _FINER) + 0.5) / (size * _FINER)
    u, v = np.meshgrid(fine, fine)
    eye = find_eye(view)
    x, y, is_ground = eye.find_ground(u, v)
    # Things lie as the camera sees them: the ground is turned instead
    east, north = rotate(x - view.about[0], y - view.about[1], view.camera)
    east, north = east + view.about[0], north + view.about[1]
    # The window that `backdrop` cuts out of its strip, as a place on the plane
    depth = stage.DISTANCE + north * math.cos(stage.PITCH) + stage.TARGET[2] * math.sin(stage.PITCH)
    east = side * east + shift * stage.VIEW / stage.DISTANCE * depth
    colour = np.clip(GROUND[ground](east, north), 0.0, 1.0) * np.array(LIGHT[light].ground)
    edge = eye.project(eye.x, stage.FAR_EDGE, 0.0)[1]
    if edge > 0:
        sky = _paint_sky(light, 0.5 + shift + side * (u - 0.5), v, edge)
        colour = np.where(is_ground[..., None], colour, sky)
    return _average(colour, _FINER).astype(np.float32)


@lru_cache(maxsize=96)
def _strip(ground: str, light: str, size: int) -> NDArray[np.float32]:
    """(size, 1.5 size, 3)"""
    tint = LIGHT[light]
    colour = _ground(ground, size) * np.array(tint.ground)
    # 1 where the sky is, 0 where the ground is
    edge = stage.project(0.0, stage.FAR_EDGE, 0.0)[1]
    blend = _average((_grid(size)[1] < edge)[..., None] * 1.0, _FINER)
    return (colour * (1 - blend) + _sky(light, size) * blend).astype(np.float32)


@lru_cache(maxsize=32)
def _ground(name: str, size: int) -> Floats:
    """The ground in even light, as the camera sees it."""
    x, y = _world(size)
    fine = GROUND[name](x, np.minimum(y, stage.FAR_EDGE))
    return _average(np.clip(fine, 0.0, 1.0), _FINER)


def _grid(size: int) -> tuple[Floats, Floats]:
    """u and v of the centres of the fine pixels; u runs beyond the picture on both sides."""
    rows, columns = size * _FINER, round(size * _WIDER) * _FINER
    u = 0.5 + ((np.arange(columns) + 0.5) / rows - _WIDER / 2)
    v = (np.arange(rows) + 0.5) / rows
    return np.meshgrid(u, v)[0], np.meshgrid(u, v)[1]


def _world(size: int) -> tuple[Floats, Floats]:
    """The point of the ground at each fine pixel; inverse of `stage.project` with z = 0."""
    u, v = _grid(size)
    sine, cosine = math.sin(stage.PITCH), math.cos(stage.PITCH)
    drop = stage.TARGET[2]
    k = (0.5 - v) * stage.VIEW / stage.DISTANCE
    y = (k * (stage.DISTANCE + drop * sine) + drop * cosine) / (sine - k * cosine)
    y = np.where((y < -20) | (y > 60), 60.0, y)
    depth = stage.DISTANCE + y * cosine + drop * sine
    return (u - 0.5) * stage.VIEW / stage.DISTANCE * depth, y


def _sky(name: str, size: int) -> Floats:
    u, v = _grid(size)
    return _average(_paint_sky(name, u, v, stage.project(0.0, stage.FAR_EDGE, 0.0)[1]), _FINER)


def _paint_sky(name: str, u: Floats, v: Floats, edge: float) -> Floats:
    """The sky at these places of the picture; it ends at the row `edge`."""
    light = LIGHT[name]
    colour = _mix(light.horizon, light.zenith, (edge - v) / edge)
    for overlay, rgb in _draw_sky_objects(name, light, u, v, edge):
        colour = _mix(colour, rgb, overlay)
    return np.clip(colour, 0, 1)


def _draw_sky_objects(name: str, light: Light, u: Floats, v: Floats, edge: float) -> list[tuple[Floats, Rgb]]:
    """What is seen in the sky: how much of each pixel it covers, and its colour."""
    rows = {"day": 0.20, "sunset": 0.85, "night": 0.36}
    distance = np.hypot(u - 0.68, v - rows[name] * edge)
    orb = np.clip((0.042 - distance) * 400, 0, 1), light.orb
    glow = 0.55 * np.exp(-((distance / light.glow) ** 2)), light.orb
    if name == "night":
        # Small dots, at most one for each cell of a grid
        cell_u, cell_v = np.floor(u * 22), np.floor(v * 22)
        du = u * 22 - cell_u - 0.2 - 0.6 * _hash(cell_u, cell_v, 1)
        dv = v * 22 - cell_v - 0.2 - 0.6 * _hash(cell_u, cell_v, 2)
        lit = _hash(cell_u, cell_v, 3) > 0.62
        return [((np.where(lit, np.exp(-(du**2 + dv**2) * 260), 0.0) * 0.9), (1.0, 1.0, 1.0)), glow, orb]
    wisps = _noise(u * 5, v * 22, 21) * 0.6 + _noise(u * 11, v * 46, 22) * 0.4
    band = np.exp(-(((v / edge - 0.55) / 0.28) ** 2))
    clouds = np.clip((wisps - 0.52) * 3.2, 0, 1) * band
    return [(clouds * 0.75, light.horizon if name == "sunset" else (1.0, 1.0, 1.0)), glow, orb]


def _average(fine: NDArray[Any], factor: int) -> Floats:
    rows, columns, channels = fine.shape
    return fine.reshape(rows // factor, factor, columns // factor, factor, channels).mean(axis=(1, 3))


# --- grounds ----------------------------------------------------------------------------------------


def _mix(a: Rgb | Floats, b: Rgb, t: NDArray[Any]) -> Floats:
    """From colour a at t = 0 to colour b at t = 1."""
    share = np.clip(t, 0, 1)[..., None]
    return np.asarray(a) * (1 - share) + np.asarray(b) * share


def _hash(i: Floats, j: Floats, seed: int) -> Floats:
    """A number from 0 to 1 for each pair of whole numbers, without pattern."""
    h = i.astype(np.int64) * 374761393 + j.astype(np.int64) * 668265263 + seed * 974634777
    h = (h ^ ((h & 0xFFFFFFFF) >> 13)) * 1274126177
    h = h ^ ((h & 0xFFFFFFFF) >> 16)
    return (h & 0xFFFF) / 65535.0


def _noise(x: Floats, y: Floats, seed: int) -> Floats:
    """Smooth noise from 0 to 1, with one hill or dale for each unit."""
    i, j = np.floor(x), np.floor(y)
    s, t = x - i, y - j
    s, t = s * s * (3 - 2 * s), t * t * (3 - 2 * t)
    low = _hash(i, j, seed) * (1 - s) + _hash(i + 1, j, seed) * s
    high = _hash(i, j + 1, seed) * (1 - s) + _hash(i + 1, j + 1, seed) * s
    return low * (1 - t) + high * t


def _line(position: Floats, width: float) -> Floats:
    """1 within half a width of a whole number, falling off to 0."""
    distance = np.abs(position - np.round(position))
    return np.clip(1.5 - distance / (width / 2), 0, 1)


def grass(x: Floats, y: Floats) -> Floats:
    blades = _noise(x * 16, y * 5, 1) * 0.6 + _noise(x * 30 + y * 4, y * 9, 2) * 0.4
    patches = _noise(x * 0.9, y * 0.9, 3)
    return _mix((0.20, 0.42, 0.13), (0.52, 0.72, 0.27), 0.75 * blades + 0.35 * patches - 0.05)


def sand(x: Floats, y: Floats) -> Floats:
    ripple = np.sin(y * 11 + 2.2 * _noise(x * 0.8, y * 0.8, 4) * math.pi + x * 0.8)
    grain = _noise(x * 40, y * 40, 5)
    return _mix((0.78, 0.66, 0.44), (0.96, 0.87, 0.66), 0.5 + 0.3 * ripple + 0.35 * (grain - 0.5))


def snow(x: Floats, y: Floats) -> Floats:
    drifts = _noise(x * 0.8, y * 1.3, 6) * 0.7 + _noise(x * 2.2, y * 3, 7) * 0.3
    return _mix((0.76, 0.83, 0.92), (0.98, 0.99, 1.0), drifts * 1.3 - 0.1)


def water(x: Floats, y: Floats) -> Floats:
    warp = _noise(x * 0.9, y * 1.1, 8) * 5 + _noise(x * 2, y * 2.4, 9) * 1.6
    wave = np.sin(y * 6.5 + warp) * 0.5 + 0.5
    crest = np.clip((wave - 0.80) * 5, 0, 1) * _noise(x * 2.2, y * 4, 10)
    return _mix(_mix((0.05, 0.34, 0.58), (0.20, 0.58, 0.78), wave), (0.90, 0.97, 1.0), crest)


def wood(x: Floats, y: Floats) -> Floats:
    plank = np.floor(x / 0.62)
    offset = _hash(plank, plank * 0, 11) * 9
    grain = _noise(x * 13, y * 0.9 + offset, 12) * 0.6 + _noise(x * 34, y * 1.6 + offset, 13) * 0.4
    tone = 0.25 + 0.4 * grain + 0.35 * _hash(plank, plank * 0, 14)
    colour = _mix((0.46, 0.28, 0.13), (0.80, 0.58, 0.34), tone)
    ends = _line(y / 3.1 + offset, 0.012)
    seam = np.maximum(_line(x / 0.62, 0.06), ends)[..., None]
    return colour * (1 - 0.62 * seam)


def brick(x: Floats, y: Floats) -> Floats:
    row = np.floor(y / 0.40)
    along = x / 0.82 + 0.5 * (row % 2)
    tone = _hash(np.floor(along), row, 15) * 0.7 + _noise(x * 14, y * 14, 16) * 0.3
    colour = _mix((0.52, 0.19, 0.13), (0.76, 0.36, 0.25), tone)
    return _mix(colour, (0.80, 0.76, 0.70), np.maximum(_line(y / 0.40, 0.16), _line(along, 0.08)))


def carpet(x: Floats, y: Floats) -> Floats:
    a, b = (x + y * 0.8) / 1.15, (x - y * 0.8) / 1.15
    da, db = np.abs(a - np.round(a)), np.abs(b - np.round(b))
    lattice = np.maximum(_line(a, 0.10), _line(b, 0.10))
    rosette = ((0.5 - da) ** 2 + (0.5 - db) ** 2 < 0.035) * 1.0
    pile = 0.80 + 0.4 * _noise(x * 34, y * 34, 17)
    colour = _mix(_mix((0.36, 0.10, 0.30), (0.86, 0.72, 0.46), lattice), (0.18, 0.42, 0.44), rosette)
    return colour * pile[..., None]


def tiles(x: Floats, y: Floats) -> Floats:
    i, j = np.floor(x / 0.80), np.floor(y / 0.80)
    odd = (i + j) % 2
    colour = _mix((0.90, 0.91, 0.90), (0.50, 0.57, 0.63), odd) + (_hash(i, j, 18)[..., None] - 0.5) * 0.05
    grout = np.maximum(_line(x / 0.80, 0.035), _line(y / 0.80, 0.035))[..., None]
    return colour * (1 - 0.3 * grout)


GROUND: Mapping[str, Callable[[Floats, Floats], Floats]] = {
    each.__name__: each for each in (grass, sand, snow, water, wood, brick, carpet, tiles)
}
