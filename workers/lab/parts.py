"""Parts of images: the region where a unit responds, and one of the same shape and size where it does not.

Regions are masks of an image, bool (height, width). Pure geometry, for `workers.jobs.label_checks.parts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.lab.imaging import bright_region
from workers.protocols import MapImage

Region = NDArray[np.bool_]
MAX_COVER = 0.4
"""Share of an image above which a region has no second one of its size beside it."""
MAX_OVERLAP = 0.05
"""Share of a region that may lie in the other one."""
_TRIES = 40


@dataclass(frozen=True)
class PartPair:
    """Where the unit responds, and where it does not."""

    responding: Region
    elsewhere: Region


def find_region(found: MapImage | None, size: tuple[int, int]) -> Region | None:
    """Return what is bright in the masked image of `size` (width, height); None if nothing is, or without a map."""
    if found is None:
        return None
    # The map is kept in 256 steps of grey.
    steps = np.asarray(found.grey.convert("L"), np.float32) / 255
    region = bright_region(found.low + steps * (found.high - found.low), found.threshold, size)
    return region if region.any() else None


def pair_regions(regions: Sequence[Region | None], rng: np.random.Generator) -> list[PartPair | None]:
    """Return each region with one elsewhere; None where there is none."""
    # Middles of other images' regions are places where objects usually are.
    middles = [None if each is None else _find_middle(each) for each in regions]
    places = [each for each in middles if each is not None]
    return [
        None if each is None or middle is None or each.mean() > MAX_COVER else _pair(each, middle, places, rng)
        for each, middle in zip(regions, middles, strict=True)
    ]


def _pair(
    region: Region, middle: tuple[float, float], places: Sequence[tuple[float, float]], rng: np.random.Generator
) -> PartPair | None:
    height, width = region.shape
    # To the middle of another image's region, where things do lie; to a random place if none of these is free.
    order = [places[at] for at in rng.permutation(len(places))[:_TRIES]]
    for down, across in [*order, *rng.random((_TRIES, 2)).tolist()]:
        steps = (round((down - middle[0]) * height), round((across - middle[1]) * width))
        # What leaves the image at one side comes in at the other, so that the size stays the same.
        moved = np.roll(region, steps, (0, 1))
        # A slight overlap is allowed, or large regions would find no place.
        if (moved & region).sum() <= MAX_OVERLAP * region.sum():
            return PartPair(region, moved)
    return None


def _find_middle(region: Region) -> tuple[float, float]:
    """Return the middle (down, across), as shares of the image."""
    rows, columns = np.nonzero(region)
    return float(rows.mean() / region.shape[0]), float(columns.mean() / region.shape[1])
