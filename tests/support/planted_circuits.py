"""A network of two layers whose edges are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from workers.circuits.planted import SIDE, number_images
from workers.protocols import LayerInfo, Picture, Rewrite


class PlantedGraph:
    """A `TraceableModel` of two layers, "low" and "high", whose edges are known: `WEIGHTS` of the units of "high".

    Every unit of "low" is drawn by itself. Unit 3 of "low" is dead and unit 2 of "high" never varies. The logit of the
    class "seen" is twice unit 0 of "high" less unit 1, that of "other" a tenth of unit 3.
    """

    name, revision = "graph", "1"
    WEIGHTS = ((1.0, 0.0, -0.5, 0.0), (0.0, 0.3, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
    """Of 4 units of "high" for 4 of "low"."""

    def __init__(self) -> None:
        self.passes = 0

    def layers(self) -> list[LayerInfo]:
        classes = LayerInfo("logits", "logits", "logit", 2, names=("seen", "other"), scale="softmax")
        return [LayerInfo("low", "low", "conv", 4), LayerInfo("high", "high", "conv", 4), classes]

    def maps(self, images: Sequence[Image.Image], layers: Sequence[str]) -> Mapping[str, Tensor]:
        found: dict[str, Tensor] = {}
        keep = {name: lambda maps, name=name: found.setdefault(name, maps) for name in ("low", "high")}
        found["logits"] = self.trace(images, keep)[:, :, None, None]
        return {layer: found[layer] for layer in layers}

    def outputs(
        self, images: Sequence[Image.Image], layer: str, rewrite: Rewrite | None = None, *, gradients: bool = False
    ) -> Tensor:
        return self.trace(images, {layer: rewrite}, gradients=gradients)

    def trace(
        self, images: Sequence[Image.Image], rewrites: Mapping[str, Rewrite | None], *, gradients: bool = False
    ) -> Tensor:
        self.passes += 1
        with torch.set_grad_enabled(gradients):
            low = (rewrites.get("low") or _keep)(self._draw(images))
            high = (
                torch.einsum("hl,blxy->bhxy", torch.tensor(self.WEIGHTS), low)
                + torch.tensor([1.0, 1, 1, 0])[:, None, None]
            )
            read = (rewrites.get("high") or _keep)(high.relu()).amax((2, 3))
            return torch.stack([2 * read[:, 0] - read[:, 1], 0.1 * read[:, 3]], 1)

    def _draw(self, images: Sequence[Image.Image]) -> Tensor:
        """(batch, 4, side, side)"""
        found = torch.zeros(len(images), 4, SIDE, SIDE)
        for at, image in enumerate(images):
            red, green, _ = image.getpixel((0, 0))
            rng = np.random.default_rng([red, green, 2])
            found[at, :3] = torch.from_numpy(rng.random(3))[:, None, None]
        return found


def _keep(maps: Tensor) -> Tensor:
    return maps


class NumberImages:
    """A `Dataset` of `number_images`."""

    name, revision = "numbers", "1"

    def __init__(self, count: int) -> None:
        self._images = number_images(count)

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, index: int) -> Picture:
        return Picture(self._images[index])
