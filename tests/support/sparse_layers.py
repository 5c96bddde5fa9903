"""A layer whose activations are sums of known directions, few at each place, a dataset that has no files, and
auto-encoders that were never trained."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image

from workers import registry
from workers.errors import BrokenImage
from workers.protocols import LabSettings, LayerInfo, Picture
from workers.sparse.autoencoder import TOPK, SparseAutoencoder
from workers.sparse.quality import Quality
from workers.sparse.storage import SparseCard, find_path, save_autoencoder

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


def save_random(state, name="random", *, base="toybox", layer="layer4", latents=64, k=4, revision=None):
    """An auto-encoder with random weights over a layer of a model of the registry, and its card. Nothing is trained."""
    below = registry.load(registry.VISION_MODELS, base)(LabSettings(state))
    info = next(each for each in below.layers() if each.name == layer)
    network = SparseAutoencoder(info.units, latents, k, TOPK, seed=1)
    recipe = {"kind": TOPK, "k": k, "latents": latents, "seed": 1, "steps": 1, "batch": 16, "images": 100, "scale": 1.0}
    card = SparseCard(
        name=name,
        model=below.name,
        model_revision=revision or below.revision,
        model_key=base,
        layer=layer,
        layer_path=info.path,
        units=info.units,
        dataset="toybox",
        dataset_revision="1",
        dataset_key="toybox",
        fingerprint=f"{latents:012x}{k:012x}",
        quality=Quality(0.25, float(k), 0.125, 1000),
        **recipe,
    )
    save_autoencoder(network, card, find_path(state, name))
    return network.eval(), card
