"""Toybox's counterpart of Spawrious: each of four toys is nearly always on its own ground in training, on others in the
test.

As in Spawrious's one-to-one challenge (Lynch et al. 2023), training has two environments, in which 97 % and 87 % of
a class are on its ground and the rest on a filler ground that all classes share. Colour, size, light and view are
random, so that only the ground correlates with the class. Every picture follows from the seed, its split and its
number, and is drawn on demand, which takes about as long as decoding a file. Called through the registry.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workers.errors import UnknownName
from workers.protocols import GROUP_SPLITS, GroupSplit, LabSettings, Picture
from workers.toybox.networks import nets
from workers.toybox.world import splits
from workers.toybox.world.prompts import caption
from workers.toybox.world.scenes import COLOURS, SIZES, Scene, compose

CLASSES = ("car", "train", "boat", "duck")
"""Toys of similar size."""
OWN = ("grass", "sand", "snow", "wood")
"""The ground of each class in training."""
FILLER = "tiles"
SHARES = (0.97, 0.87)
"""Share of a class on its own ground, in each environment."""
POOL = 6_000
"""Images of the training and validation splits together, nine to one."""
BALANCED, TEST = 16 * 80, 12 * 125
_MIN_IMAGES = 160


def load(settings: LabSettings, name: str) -> GroundsSplit:
    """Return one split: "seed-0:validation", or "seed-0-of-240:validation" for a small one. Raises UnknownName."""
    # "-of-N" makes a small split for tests and trials
    found = re.fullmatch(r"seed-(\d{1,6})(?:-of-(\d{3,6}))?:(\w+)", name)
    if not found or found[3] not in GROUP_SPLITS or int(found[2] or POOL) < _MIN_IMAGES:
        raise UnknownName(
            f"toybox-grounds has no split {name!r}. Name a seed, at least {_MIN_IMAGES} images if not all, and one of "
            f"{', '.join(GROUP_SPLITS)}: toybox-grounds:seed-0:validation or toybox-grounds:seed-0-of-600:test."
        )
    seed, pool, split = int(found[1]), int(found[2] or POOL), found[3]
    return GroundsSplit(name, seed, pool, split, settings.dataset_images)


class GroundsSplit:
    """See `protocols.GroupedDataset`. Safe for threads."""

    classes: Sequence[str] = CLASSES
    grounds: Sequence[str] = (*OWN, FILLER)
    network = "small"
    start: Path | None = nets.NET_FILE
    epochs = 2

    def __init__(self, name: str, seed: int, pool: int, split: GroupSplit, most: int = 0) -> None:
        self.name = f"toybox-grounds:{name}"
        # A part of the split is another dataset: indexes must not be shared
        self.revision = splits.pictures_revision() + (f"-{most}" if most else "")
        self._stem = f"toybox grounds {seed} {pool} {split}"
        self.cells: NDArray[np.int64] = _list_cells(seed, pool, split)[: most or None]

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, index: int) -> Picture:
        """Return the picture, 224 x 224, and its scene. Raises IndexError outside 0 … length - 1."""
        # Imported here because only pictures need the renderer
        from workers.toybox.world import render

        if not 0 <= index < len(self):
            raise IndexError(f"{self.name} has no image {index}: they are numbered 0 to {len(self) - 1}.")
        scene = self.scene(index)
        return Picture(render.render(scene, splits.NATIVE), scene.to_json())

    def source(self, index: int) -> str:
        """Describe the picture in words."""
        return caption(self.scene(index))

    def scene(self, index: int) -> Scene:
        """Return the scene of a picture."""
        toy, ground = self.cells[index]
        # By the picture's number: each is drawn on demand, in any order
        rng = random.Random(f"{self._stem} {index}")
        kind = CLASSES[toy], rng.choice(COLOURS), rng.choice(SIZES)
        return compose([kind], rng, ground=self.grounds[ground])


def _list_cells(seed: int, pool: int, split: GroupSplit) -> NDArray[np.int64]:
    """Return class and ground of each image of a split, in an order that follows from the seed."""
    shrunk = pool / POOL
    # Balanced: every class equally often on every ground
    if split == "balanced":
        cells = _repeat([(toy, at) for toy in range(4) for at in range(4)], BALANCED * shrunk)
    # Test: no class on its own ground
    elif split == "test":
        cells = _repeat([(toy, (toy + shift) % 4) for toy in range(4) for shift in (1, 2, 3)], TEST * shrunk)
    # Train and validation: cut from one confounded pool
    else:
        cells = list(_confound(pool // 8))
    # The same order for both parts of the pool, or they would overlap
    order = random.Random(f"toybox grounds {seed} {'pool' if split in ('train', 'validation') else split}")
    order.shuffle(cells)
    cut = len(cells) * 9 // 10
    part = cells[:cut] if split == "train" else cells[cut:] if split == "validation" else cells
    return np.array(part, dtype=np.int64)


def _repeat(cells: Sequence[tuple[int, int]], count: float) -> list[tuple[int, int]]:
    """Return about `count` cells, each equally often."""
    return list(cells) * max(1, round(count / len(cells)))


def _confound(each: int) -> Iterator[tuple[int, int]]:
    """Draw this many images of each class in each environment."""
    for toy in range(4):
        for share in SHARES:
            own = int(share * each)
            # The filler has the index 4, after the four grounds
            yield from [(toy, toy)] * own + [(toy, 4)] * (each - own)
