"""Units and labels whose truth is known, drawn by chance: what intervals are tried on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from workers.metrics.natural import correlate
from workers.metrics.ranking import average_precision

Floats = NDArray[np.float64]
POPULATION = 2_000_000
"""Images that the truth is measured over: its standard error is at most a fiftieth of an interval of 1,000 images."""
_DISTANCE = 2.5
"""Standard deviations by which the concept raises a graded unit."""
_HIT = 0.9
"""How often the concept excites a sparse unit, which is silent otherwise."""


@dataclass(frozen=True)
class SimulatedUnit:
    """A unit and a label that is present on `base_rate` of the images.

    graded: noise, raised by the concept; sparse: silent but for the concept; null: sparse, the label being of something
    else. A label is the concept itself, half of it (narrow), or twice as much (broad).
    """

    kind: Literal["graded", "sparse", "null"]
    base_rate: float
    label: Literal["right", "narrow", "broad"] = "right"

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.label}" if self.kind != "null" else "null"

    @cached_property
    def truth(self) -> tuple[float, float]:
        """r and average precision over the population."""
        acts, there = self.draw(np.random.default_rng(0), POPULATION)
        r = float(correlate(acts, there, np.ones((1, POPULATION)))[0])
        return (0.0 if self.kind == "null" else r), float(average_precision(acts, there > 0))

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        """Activations and presence (0 or 1) of n images."""
        share = {"right": 1.0, "narrow": 2.0, "broad": 0.5}[self.label]
        concept = rng.random(n) < self.base_rate * share
        said = concept.copy()
        if self.label == "narrow":
            said &= rng.random(n) < 0.5
        elif self.label == "broad":
            said |= rng.random(n) < self.base_rate * 0.5 / (1 - self.base_rate * 0.5)
        if self.kind == "null":
            said = rng.random(n) < self.base_rate
        noise = rng.normal(0, 1, n)
        if self.kind == "graded":
            return noise + _DISTANCE * concept, said.astype(np.float64)
        lit = concept & (rng.random(n) < _HIT)
        return np.where(lit, np.abs(3 + noise), 0.0), said.astype(np.float64)
