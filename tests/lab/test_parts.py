"""Parts of images: the region of a map, one as large elsewhere, and what has none."""

from __future__ import annotations

import numpy as np
import pytest

from workers.lab.imaging import bright_region, draw_map
from workers.lab.parts import MAX_COVER, MAX_OVERLAP, Region, find_region, pair_regions

SIDE = 60


def blob(down: int, across: int, size: int = 12) -> Region:
    region = np.zeros((SIDE, SIDE), bool)
    region[down : down + size, across : across + size] = True
    return region


def test_a_region_is_what_the_masked_image_leaves_bright() -> None:
    values = np.random.default_rng(0).normal(0, 1, (7, 7)).astype(np.float32)
    found = find_region(draw_map(values, 0.8, (SIDE, SIDE)), (SIDE, SIDE))
    assert found is not None
    assert (found != bright_region(values, 0.8, (SIDE, SIDE))).mean() < 0.02
    assert find_region(draw_map(values, 99.0, (SIDE, SIDE)), (SIDE, SIDE)) is None
    assert find_region(None, (SIDE, SIDE)) is None


def test_the_other_part_is_as_large_and_lies_where_units_respond_in_other_images() -> None:
    regions = [blob(5, 5), blob(40, 40), blob(5, 40)]
    pairs = pair_regions(regions, np.random.default_rng(0))
    for region, pair in zip(regions, pairs, strict=True):
        assert pair is not None
        assert (pair.responding == region).all()
        assert pair.elsewhere.sum() == region.sum()
        assert not (pair.elsewhere & region).any()
        assert any((pair.elsewhere == other).all() for other in regions if other is not region)


@pytest.mark.parametrize("region", [np.ones((SIDE, SIDE), bool), blob(0, 0, 45), None])
def test_a_region_that_leaves_no_room_has_no_second_one(region: Region | None) -> None:
    assert pair_regions([region], np.random.default_rng(0)) == [None]


def test_regions_in_one_place_are_moved_by_lot() -> None:
    pairs = pair_regions([blob(20, 20)] * 30, np.random.default_rng(1))
    assert blob(20, 20).mean() < MAX_COVER
    for pair in pairs:
        assert pair is not None
        assert (pair.elsewhere & pair.responding).sum() <= MAX_OVERLAP * pair.responding.sum()
