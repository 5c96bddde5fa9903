"""The stage: where the camera stands, and places for things on the ground that do not hide each other.

Pure arithmetic; knows neither toys nor the engine. `scenes` places things with it; `render` and `backdrops` look
through its camera.
World units: a large toy is about 1.2 high; x to the right, y away from the camera, z up; the ground is z = 0.
Picture coordinates: u to the right and v down, each from 0 to 1.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PITCH = math.radians(23.0)
"""How far the camera looks down."""
DISTANCE = 14.0
"""From the camera to `TARGET`."""
VIEW = 4.4
"""Width, and height, of what is in the picture at the target."""
TARGET = (0.0, 0.0, 0.62)
FAR_EDGE = 3.7
"""The y at which the ground ends and the sky begins."""

MARGIN = 0.025
"""Kept free along the border of the picture, in picture units."""
_NEAR, _FAR = -2.0, 1.9
_TRIES = 300


@dataclass(frozen=True)
class Box:
    """What a thing, or a stack of things, takes up: half its width and its height, in world units."""

    radius: float
    height: float


@dataclass(frozen=True)
class Frame:
    """A rectangle in the picture."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def area(self) -> float:
        return max(0.0, self.right - self.left) * max(0.0, self.bottom - self.top)

    def overlap(self, other: Frame) -> float:
        """The share of the smaller rectangle that the other covers, 0 to 1."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, width) * max(0.0, height) / min(self.area, other.area)


def project(x: float, y: float, z: float) -> tuple[float, float]:
    """Where a point of the world appears in the picture: (u, v)."""
    rise = z - TARGET[2]
    depth = DISTANCE + y * math.cos(PITCH) - rise * math.sin(PITCH)
    up = y * math.sin(PITCH) + rise * math.cos(PITCH)
    zoom = DISTANCE / VIEW / depth
    return 0.5 + x * zoom, 0.5 - up * zoom


def frame(box: Box, x: float, y: float) -> Frame:
    """The rectangle that a box standing at (x, y) fills in the picture, roughly."""
    left, bottom = project(x - box.radius, y - 0.6 * box.radius, 0.0)
    right, _ = project(x + box.radius, y, 0.0)
    _, top = project(x, y, box.height)
    return Frame(left, top, right, bottom)


def place_boxes(
    boxes: Sequence[Box],
    rng: random.Random,
    left_of: Sequence[tuple[int, int]] = (),
    sides: Mapping[int, int] | None = None,
    taken: Sequence[Frame] = (),
    room: tuple[float, float] = (-math.inf, math.inf),
) -> list[tuple[float, float]]:
    """A place (x, y) for each box, inside the picture and hiding the others as little as can be.

    `left_of` holds pairs (i, j): box i stands to the left of box j. `sides` says of a box that it stands in the left
    (-1) or right (+1) half. `taken` are the parts of the picture where others stand already; `room` the least and the
    greatest x of every box.
    Wishes that contradict each other are met as far as they can be. At most `_TRIES` attempts.
    """
    best: list[tuple[float, float]] = []
    least = math.inf
    for _ in range(_TRIES if boxes else 0):
        spots = _order_spots([_choose_spot(box, rng) for box in boxes], left_of)
        cost = _measure_crowding(boxes, spots, taken)
        # Wishes that are not met clearly
        cost += float(sum(spots[j][0] - spots[i][0] < 0.5 for i, j in left_of))
        cost += sum(spots[i][0] * side < 0.25 for i, side in (sides or {}).items())
        cost += sum(1.0 for x, _ in spots if not room[0] <= x <= room[1])
        if cost < least:
            best, least = spots, cost
        if least <= 0.0:
            break
    return [(round(x, 3), round(y, 3)) for x, y in best]


def _choose_spot(box: Box, rng: random.Random) -> tuple[float, float]:
    """A random place where the box is wholly in the picture; tall stacks stand in front."""
    y = rng.uniform(_NEAR, _FAR)
    while frame(box, 0.0, y).top < MARGIN and y > _NEAR:
        y = max(_NEAR, y - 0.25)
    reach = (0.5 - MARGIN) * VIEW * (1 + y * math.cos(PITCH) / DISTANCE) - box.radius
    return rng.uniform(-reach, reach), y


def _order_spots(spots: list[tuple[float, float]], left_of: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
    """The same places, handed out so that those who stand to the left get the places to the left."""
    for i, j in left_of:
        if spots[i][0] > spots[j][0]:
            (xi, yi), (xj, yj) = spots[i], spots[j]
            spots[i], spots[j] = (xj, yi), (xi, yj)
    return spots


def _measure_crowding(boxes: Sequence[Box], spots: Sequence[tuple[float, float]], taken: Sequence[Frame]) -> float:
    """How much the things hide each other: 0 if the frames of no two overlap by more than a sliver."""
    frames = [frame(box, x, y) for box, (x, y) in zip(boxes, spots, strict=True)]
    outside = sum(max(0.0, MARGIN - f.left) + max(0.0, f.right - 1 + MARGIN) for f in frames)
    overlaps = [f.overlap(g) for k, f in enumerate(frames) for g in [*frames[:k], *taken]]
    return 4 * outside + sum(overlap for overlap in overlaps if overlap > 0.03)
