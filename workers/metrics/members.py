"""How the members of a circuit respond together where its label says, and which members the label explains.

The activation of a circuit is a mean, so a label may predict it well although some member does not follow it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workers.metrics.natural import PRESENT, correlate
from workers.record.circuits import CircuitFindings, CircuitMember, MemberFinding, MemberStates

_Floats = NDArray[np.float64]


def score_members(
    members: Sequence[CircuitMember], shares: ArrayLike, presence: ArrayLike, weights: ArrayLike | None = None
) -> CircuitFindings:
    """Return the findings. `shares` (n, members) are activation / threshold; `presence` and `weights` (n,) as for
    `score_natural`."""
    values, there = np.asarray(shares, np.float64), np.asarray(presence, np.float64)
    heavy = np.ones_like(there) if weights is None else np.asarray(weights, np.float64)
    kept = np.isfinite(there) & np.isfinite(values).all(1)
    values, there, heavy = values[kept], there[kept], heavy[kept]
    # 1 is the member's own threshold.
    is_on, shown = values >= 1, there >= PRESENT
    # (members,), of the images that the label describes, and of the others
    alone = [_find_off_alone(is_on[some], heavy[some]) for some in (shown, ~shown)]
    without = _correlate_without(values, there, heavy)
    return CircuitFindings(
        described=_count_states(is_on[shown], heavy[shown]),
        others=_count_states(is_on[~shown], heavy[~shown]),
        pearson=_correlate(values.mean(1), there, heavy),
        members=tuple(
            MemberFinding(each.model, each.layer, each.unit, alone[0][place], alone[1][place], without[place])
            for place, each in enumerate(members)
        ),
    )


def _count_states(is_on: NDArray[np.bool_], weights: _Floats) -> MemberStates:
    """Return the shares of images by how many members are on. With a single member, `one_off` is 0."""
    if not weights.sum() > 0:
        return MemberStates(len(is_on))
    off = (~is_on).sum(1)
    all_on, all_off = off == 0, off == is_on.shape[1]
    # A single member that is off is "all off".
    one_off = (off == 1) & ~all_off
    shares = [_sum_weights(each, weights) for each in (all_on, all_off, one_off, ~(all_on | all_off | one_off))]
    return MemberStates(len(is_on), *shares)


def _find_off_alone(is_on: NDArray[np.bool_], weights: _Floats) -> list[float | None]:
    """Return for each member the share of images on which it alone is off."""
    if not weights.sum() > 0:
        return [None] * is_on.shape[1]
    one_off = ((~is_on).sum(1) == 1) & (is_on.shape[1] > 1)
    return [_sum_weights(one_off & ~is_on[:, place], weights) for place in range(is_on.shape[1])]


def _sum_weights(chosen: NDArray[np.bool_], weights: _Floats) -> float:
    return round(float(weights[chosen].sum() / weights.sum()), 5)


def _correlate_without(values: _Floats, presence: _Floats, weights: _Floats) -> list[float | None]:
    count = values.shape[1]
    if count < 2:
        return [None] * count
    total = values.sum(1)
    # r rises without a member that the label does not explain, and falls without one that carries it.
    return [_correlate((total - values[:, place]) / (count - 1), presence, weights) for place in range(count)]


def _correlate(activations: _Floats, presence: _Floats, weights: _Floats) -> float | None:
    """Return r, or None if either side is constant."""
    if not weights.sum() > 0:
        return None
    found = float(correlate(activations, presence, weights[None])[0])
    return round(found, 5) if math.isfinite(found) else None
