"""Judges a label by scenes that nobody chose: how often does a scene that it describes outdo one that it does not?

The product's reading of labels draws the scenes; half of the others are hard negatives. Called by the benchmarks of the
scripted scientist.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np

from workers.metrics.ranking import area_under_curve
from workers.toybox.label_reading import read_label
from workers.toybox.world.scenes import Scene

EACH = 20
"""Scenes on either side."""

Respond = Callable[[Sequence[Scene]], Sequence[float]]
"""A unit: an activation for each scene."""


def label_auc(label: str, respond: Respond, seed: int, each: int = EACH) -> float:
    """The AUC of a unit's activations on scenes that the label describes against scenes that it does not.

    1 if every described scene outdoes every other one, 0.5 for a label that says nothing. Raises as `read_label` does.
    """
    read = read_label(label)
    others = [*read.near_scenes(each // 2, seed), *read.neutral_scenes(each - each // 2, seed)]
    activations = list(respond([*read.positive_scenes(each, seed), *others]))
    return area_under_curve(np.array(activations[:each]), np.array(activations[each:]))


def shuffle_labels(count: int, seed: int) -> list[int]:
    """For each of `count` units the number of the unit whose label it gets, never its own; [0] for a single unit.

    Labels dealt to the wrong units give the floor: what an AUC is worth that has nothing to do with the unit.
    """
    order = list(range(count))
    random.Random(f"shuffled labels {seed}").shuffle(order)
    dealt = [0] * count
    for place, unit in enumerate(order):
        dealt[unit] = order[(place + 1) % count]
    return dealt
