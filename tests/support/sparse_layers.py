"""A layer whose activations are sums of known directions, few at each place, and a dataset that has no files."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image

from workers.errors import BrokenImage
from workers.protocols import LayerInfo, Picture

UNITS, DIRECTIONS, ACTIVE, SIDE = 12, 24, 2, 4


class NumberedImages:
    """A `Dataset`: an image is one pixel that holds its number."""

    name = "numbers"

    def __init__(self, count, broken=()):
        self.revision = str(count)
        self.count = count
        self.broken = frozenset(broken)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index in self.broken:
            raise BrokenImage(f"{index}.png: is no image. Remove it.")
        return Picture(Image.new("RGB", (1, 1), (index >> 16, index >> 8 & 255, index & 255)))


class SumsOfDirections:
    """A `VisionModel`: at each place of a 4 x 4 map some of 24 directions are added up; which, the number says."""

    name = "sums"

    def __init__(self, values=None, units=UNITS):
        self.revision = "1"
        self.values = values  # instead of the sums, at all places
        self.units = units
        self.seen = []
        rng = np.random.default_rng(7)
        rows = rng.normal(size=(DIRECTIONS, units))
        self.directions = rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def layers(self):
        return [LayerInfo("sums", "sums", "conv", self.units)]

    def maps(self, images, layers):
        numbers = [r << 16 | g << 8 | b for r, g, b in (image.getpixel((0, 0)) for image in images)]
        self.seen += numbers
        found = np.stack([self.map_of(number) for number in numbers])
        return {layer: torch.from_numpy(found).float() for layer in layers}

    def map_of(self, number):
        """(units, side, side)"""
        if self.values is not None:
            return np.full((self.units, SIDE, SIDE), self.values)
        rng = np.random.default_rng(number)
        weights = np.zeros((SIDE * SIDE, DIRECTIONS))
        for row in weights:
            row[rng.choice(DIRECTIONS, ACTIVE, replace=False)] = rng.uniform(1, 2, ACTIVE)
        return (3 + weights @ self.directions).T.reshape(self.units, SIDE, SIDE)
