"""Missing-label and extra-label tests of what looks at more than one unit's activations: hard negatives, and fuzzing.

As `sanity`, of a simulated layer: as many images again as show a unit's concept, twice, show its kin, such as balls of
another colour. Five other units respond to both and fifteen to something else. What is added to a label is drawn from
all images, or from its kin; for fuzzing, from all places of all images, or of those that show the concept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.support.sanity import LEAST, MOST
from workers.lab.measured_splits import PILOT
from workers.metrics.detection import score_detection
from workers.metrics.fuzzing import assign_parts, choose_top, score_fuzzing
from workers.metrics.hard_negatives import (
    find_neighbours,
    measure_likeness,
    measure_neighbours,
    score_hard_negatives,
)
from workers.metrics.natural import plan_images

Bools = NDArray[np.bool_]
KIN, RELATED, UNITS = 2, 5, 21
PLACES = 9
"""Places of an image, in one of which the concept is."""


@dataclass(frozen=True)
class SimulatedLayer:
    """A unit, in column 0 of `table` (n, units), among others of its layer, and what images show."""

    table: NDArray[np.float64]
    there: Bools
    kin: Bools
    places: NDArray[np.int64]
    """Where the unit responds most: where the concept is, if it is there."""

    @property
    def activations(self) -> NDArray[np.float64]:
        return self.table[:, 0]

    def threshold(self, share: float) -> float:
        """Which such a share of the images exceeds."""
        return float(np.quantile(self.activations, 1 - share))


Metric = Callable[[SimulatedLayer, Bools, float], float]


def make_layers(count: int, frequency: float, seed: int) -> list[SimulatedLayer]:
    """Of as many images as a check takes; every unit is excited by 1 to 4 deviations."""
    rng = np.random.default_rng(seed)
    n = min(plan_images(round(frequency * PILOT), PILOT), MOST)
    shows = max(2, round(frequency * n))
    made = []
    for _ in range(count):
        order = rng.permutation(n)
        there, kin = np.zeros(n, bool), np.zeros(n, bool)
        there[order[:shows]], kin[order[shows : (1 + KIN) * shows]] = True, True
        excited = [there, *[there | kin] * RELATED]
        excited += [rng.random(n) < (1 + KIN) * frequency for _ in range(UNITS - len(excited))]
        table = rng.normal(0, 1, (n, UNITS)) + rng.uniform(1, 4, UNITS) * np.array(excited).T
        made.append(SimulatedLayer(table, there, kin, rng.integers(PLACES, size=n)))
    return made


def detection(layer: SimulatedLayer, said: Bools, share: float) -> float:
    return score_detection(layer.activations, said, layer.threshold(share)).balanced_accuracy.value or 0.0


def alike(layer: SimulatedLayer, said: Bools, share: float) -> float:
    hardness = measure_likeness(layer.activations, layer.table, 0)
    assert hardness is not None
    found = score_hard_negatives(layer.activations, said, layer.threshold(share), hardness)
    return found.balanced_accuracy.value or 0.0


def neighbours(layer: SimulatedLayer, said: Bools, share: float) -> float:
    """NaN for a unit without neighbours."""
    found_units = find_neighbours(layer.activations, layer.table, 0)
    if not found_units:
        return float("nan")
    hardness = measure_neighbours(layer.table, found_units)
    found = score_hard_negatives(layer.activations, said, layer.threshold(share), hardness)
    return found.balanced_accuracy.value or 0.0


def fuzzing(layer: SimulatedLayer, shown: Bools, share: float) -> float:
    """`shown` (n, places): where the label sees something."""
    top = choose_top(layer.activations, layer.threshold(share))
    responds = assign_parts(len(top), seed=0)
    elsewhere = (layer.places + 1 + np.arange(len(layer.places)) % (PLACES - 1)) % PLACES
    right, wrong = top[responds], top[~responds]
    found = score_fuzzing(shown[right, layer.places[right]], shown[wrong, elsewhere[wrong]])
    return found.balanced_accuracy.value or 0.0


def share_falling_in(metric: Metric, layers: list[SimulatedLayer], share: float, seed: int = 0) -> list[float]:
    """Shares of units whose score falls when half of the label is missing, when as much is added anywhere, and among
    its kin; in [0, 1]. `share` of the images activate the unit. Units without a score are left out."""
    rng = np.random.default_rng(seed)
    falls = []
    for layer in layers:
        right, kin = layer.there, layer.kin
        if metric is fuzzing:
            right = np.zeros((len(layer.there), PLACES), bool)
            right[np.flatnonzero(layer.there), layer.places[layer.there]] = True
            kin = layer.there[:, None] & ~right
        labels = [_take_half(right, rng), _add(right, ~right, rng), _add(right, kin, rng)]
        score = metric(layer, right, share)
        if np.isnan(score):
            continue
        falls.append([score - metric(layer, each, share) > LEAST for each in labels])
    return [float(each) for each in np.mean(falls, axis=0)]


def _take_half(right: Bools, rng: np.random.Generator) -> Bools:
    fewer, places = right.copy().reshape(-1), np.flatnonzero(right)
    fewer[rng.choice(places, len(places) // 2, replace=False)] = False
    return fewer.reshape(right.shape)


def _add(right: Bools, among: Bools, rng: np.random.Generator) -> Bools:
    """As much again."""
    more, places = right.copy().reshape(-1), np.flatnonzero(among)
    more[rng.choice(places, min(int(right.sum()), len(places) - 1), replace=False)] = True
    return more.reshape(right.shape)
