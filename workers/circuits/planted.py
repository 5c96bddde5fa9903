"""Networks whose class rests on known units: planted circuits, with units that are only active together with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from workers.circuits.finding import CircuitSide, CircuitWish, find_circuit
from workers.protocols import LayerInfo, Progress, Rewrite

UNITS, SIDE = 48, 2
Rule = Literal["sum", "and", "or"]
RULES: Mapping[Rule, str] = {"sum": "sum", "and": "least", "or": "greatest"}
"""How the logit follows from its members."""
_IMAGES, _SEARCHED = 300, 60
"""Images that are looked at, and of these the ones on which the class is seen most."""


class PlantedModel:
    """A `RewritableModel`: an image is one pixel that holds its number, which draws the activations of its units.

    A cause of the class turns the members on and, as often, as many followers: these are as active as the members, and
    nothing reads them. The logit is the sum of the members, the least of them or the greatest.
    """

    name, revision = "planted", "1"

    def __init__(self, members: Sequence[int], followers: Sequence[int], rule: Rule) -> None:
        self.members = list(members)
        self.followers = list(followers)
        self._rule = rule

    def layers(self) -> list[LayerInfo]:
        classes = LayerInfo("logits", "logits", "logit", 2, names=("cause", "nothing"), scale="sigmoid")
        return [LayerInfo("mid", "mid", "conv", UNITS), classes]

    def maps(self, images: Sequence[Image.Image], layers: Sequence[str]) -> Mapping[str, Tensor]:
        return {layer: self._draw(images) for layer in layers}

    def outputs(
        self, images: Sequence[Image.Image], layer: str, rewrite: Rewrite | None = None, *, gradients: bool = False
    ) -> Tensor:
        del layer  # there is one
        with torch.set_grad_enabled(gradients):
            maps = self._draw(images)
            read = (rewrite(maps) if rewrite else maps)[:, self.members].mean((2, 3))
            found = {"sum": read.sum(1), "and": read.amin(1), "or": read.amax(1)}[self._rule]
            # A second class that is always 0, beside which the logit is below 0 without a cause
            return torch.stack([found - 1, torch.zeros_like(found)], 1)

    def activations(self, images: Sequence[Image.Image]) -> np.ndarray:
        """Return activations (images, units)."""
        return self._draw(images).amax((2, 3)).numpy()

    def _draw(self, images: Sequence[Image.Image]) -> Tensor:
        """Return maps (batch, units, side, side)."""
        found = torch.zeros(len(images), UNITS, SIDE, SIDE)
        for at, image in enumerate(images):
            # Red and green hold the number of the image: 16 bits
            red, green, _ = np.asarray(image)[0, 0].tolist()
            rng = np.random.default_rng([red, green])
            # Noise below 0.3, so that members stand out by 1 and more
            found[at] = torch.from_numpy(rng.random((UNITS, SIDE, SIDE)) * 0.3)
            if rng.random() < 0.2:
                for unit in [*self.members, *self.followers]:
                    found[at, unit] += 1 + rng.random()
        return found


def number_images(count: int) -> list[Image.Image]:
    return [Image.new("RGB", (1, 1), (number >> 8, number & 255, 0)) for number in range(count)]


def plant(seed: int, rule: Rule) -> PlantedModel:
    """Plant 3 to 6 members and as many followers, drawn by a seed."""
    # 44, 45 and 46 keep the draws of this room apart for one seed
    rng = np.random.default_rng([seed, 44])
    size = int(rng.integers(3, 7))
    drawn = rng.permutation(UNITS)[: 2 * size].tolist()
    return PlantedModel(drawn[:size], drawn[size:], rule)


@dataclass(frozen=True)
class PlantedFind:
    """The members found of a planted circuit, among as many of the strongest units as it has members."""

    members: int
    """Planted."""
    found: int
    """Of these."""
    followers: int
    """Units taken for members that are only active with them."""


def search_planted(model: PlantedModel, progress: Progress) -> PlantedFind:
    """Look for the circuit by exact ablation, as in a network. Raises what `progress` raises."""
    images = number_images(_IMAGES)
    side = CircuitSide(model, "mid", model.activations(images))
    report = find_circuit(side, None, images, CircuitWish(target=0, images=_SEARCHED, seeds=1), progress)
    # As many as there are members: more would find them all
    taken = {each.unit for each in report.members[: len(model.members)]}
    return PlantedFind(len(model.members), len(taken & set(model.members)), len(taken & set(model.followers)))
