"""Datasets of squares no two of which are alike, so that hashes of images deal them out as those of photographs."""

from __future__ import annotations

import random
from typing import Any

from tests.support.tiny_lab import TinyPictures
from workers.protocols import Picture

COLOURS = ("red", "green", "grey", "black")


class DistinctPictures(TinyPictures):
    """Squares of `TinyPictures`; blue in two corners numbers them, which the units for red and green do not see."""

    def __getitem__(self, index: int) -> Picture:
        picture: Picture = super().__getitem__(index)  # type: ignore[no-untyped-call]
        for corner, value in (((3, 3), index % 200), ((4, 4), index // 200)):
            red, green, _ = picture.image.getpixel(corner)  # type: ignore[misc]
            picture.image.putpixel(corner, (int(red), int(green), value))
        return picture


def draw_pictures(count: int, seed: int = 1, **known: Any) -> DistinctPictures:
    """So many squares, one in four of each colour."""
    rng = random.Random(seed)
    names = (f"{rng.choice(COLOURS)} {rng.randrange(4)}" for _ in range(count))
    return DistinctPictures(*names, **known)  # type: ignore[no-untyped-call]
