"""Repair a classifier: units of its head that were judged spurious are zeroed or scaled; nothing is learnt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.spurious.table import GroupAccuracy, Splits, measure_groups


@dataclass(frozen=True)
class RepairedGroup:
    """Accuracy of one class on one ground of the test, before and after, in [0, 1]."""

    class_name: str
    ground: str
    images: int
    before: float
    after: float


@dataclass(frozen=True)
class Repair:
    """The effect of a repair."""

    units: tuple[int, ...]
    factor: float
    before: float
    """Accuracy over all of the test."""
    after: float
    worst_before: float
    worst_after: float
    groups: tuple[RepairedGroup, ...]
    """The worst before first."""


def repair_head(
    splits: Splits, head: tuple[NDArray[np.float32], NDArray[np.float32]], spurious: Sequence[int], factor: float = 0.0
) -> Repair:
    """Multiply the head's weights of these units by `factor` (0: zero them) and test before and after.

    The bias makes up for what the units gave on average over the validation split, so that no class gains by the loss
    alone. Raises ValueError for a unit that does not exist or a factor that is not finite.
    """
    weights, bias = head
    wrong = [unit for unit in spurious if not 0 <= unit < weights.shape[1]]
    if wrong:
        raise ValueError(f"The classifier has no unit {wrong[0]}. Name units from 0 to {weights.shape[1] - 1}.")
    if not np.isfinite(factor):
        raise ValueError(f"A weight cannot be multiplied by {factor}. Give a number, 0 to leave the units out.")
    units = sorted(set(spurious))
    changed = weights.copy()
    changed[:, units] *= factor
    shift = (weights - changed) @ splits.validation.values.mean(0)
    test = splits.test
    before, after = (
        np.asarray((test.values @ each.T + offset).argmax(1), dtype=np.int64)
        for each, offset in ((weights, bias), (changed, bias + shift))
    )
    # Groups are matched by name: their order follows accuracy
    was, now = measure_groups(splits, before), {_name(each): each for each in measure_groups(splits, after)}
    groups = tuple(
        RepairedGroup(each.class_name, each.ground, each.images, each.accuracy, now[_name(each)].accuracy)
        for each in was
    )
    overall = [float((answers == test.classes).mean()) for answers in (before, after)]
    worst = min(each.accuracy for each in was), min(each.accuracy for each in now.values())
    return Repair(tuple(units), factor, overall[0], overall[1], worst[0], worst[1], groups)


def _name(group: GroupAccuracy) -> tuple[str, str]:
    return group.class_name, group.ground
