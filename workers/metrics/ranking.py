"""How well scores put what is true before what is not: area under the curve, average precision. Exact.

The one place of the house that computes either; also open to plug-ins.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Floats = NDArray[np.floating]

CHANCE = 0.5
"""Share of choices that are right by knowing nothing."""
STRONG = 0.05
"""Share of the images that count as exciting a unit: the strongest of them."""


def area_under_curve(high: Floats, low: Floats) -> float:
    """The chance that one of `high` exceeds one of `low`, ties counting half (Mann and Whitney 1947).

    Both have one dimension, any length. NaN if either is empty.
    """
    if not len(high) or not len(low):
        return float("nan")
    ranks, n = stats.rankdata(np.concatenate([high, low])), len(high)
    return float((ranks[:n].sum() - n * (n + 1) / 2) / (n * len(low)))


def measure_choices(activations: ArrayLike, presence: Sequence[float | None]) -> float | None:
    """Two-alternative forced choice: of an image that excites a unit and one that does not, which does its label
    describe better? The share of pairs in which it is the exciting one; pairs that it describes alike count half.

    Activations (n,) and presence (n,) in [0, 1] of the same images, None where nobody could say. Exciting are the
    strongest `STRONG` of the images that rise at least half as far above the median as the strongest of all does, so
    that of what is rare no image counts that shows nothing of it; the others are those up to the median. None where
    either side is empty.
    """
    acts = np.asarray(activations, dtype=np.float64)
    said = np.array([np.nan if each is None else each for each in presence], dtype=np.float64)
    known = np.isfinite(acts) & np.isfinite(said)
    acts, said = acts[known], said[known]
    if not len(acts):
        return None
    middle = float(np.median(acts))
    bound = max(float(np.sort(acts)[-max(1, round(STRONG * len(acts)))]), (middle + float(acts.max())) / 2)
    strong, weak = said[(acts >= bound) & (acts > middle)], said[acts <= middle]
    return area_under_curve(strong, weak) if len(strong) and len(weak) else None


def average_precision(scores: Floats, truth: ArrayLike) -> float:
    """Mean of the precision at the rank of each positive, best score first; NaN without positives.

    `scores` and `truth` have shape (n,); truth is bool, or says in [0, 1] how much of a positive each is. Equal scores
    share the precision at the end of their group, so that the order of the input does not matter.
    """
    shares = np.asarray(truth, np.float64)
    return float(weighted_average_precision(scores, shares, np.ones((1, len(shares))))[0])


def weighted_average_precision(scores: Floats, truth: Floats, weights: Floats) -> NDArray[np.float64]:
    """The same (resamples,) times, each with weights of its own for the images: (resamples, n), 0 and more."""
    order = np.argsort(-scores, kind="stable")
    ranked, heavy = scores[order], np.asarray(weights[:, order], np.float64)
    hits = heavy * truth[order]
    last = np.append(ranked[1:] != ranked[:-1], True)[: len(ranked)]  # last rank of each group of equal scores
    ends = np.flatnonzero(last)
    above, found = np.cumsum(heavy, 1)[:, ends], np.cumsum(hits, 1)[:, ends]
    gains = np.diff(found, axis=1, prepend=0)
    precision = np.divide(found, above, out=np.zeros_like(found), where=above > 0)
    total = hits.sum(1)
    return np.divide((precision * gains).sum(1), total, out=np.full_like(total, np.nan), where=total > 0)
