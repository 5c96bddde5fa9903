"""How well scores put what is true before what is not: area under the curve, average precision. Exact.

All code uses these functions. Plug-ins may use them too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Floats = NDArray[np.floating]

CHANCE = 0.5
"""Share of choices that guessing gets right."""
STRONG = 0.05
"""Share of the images, the strongest ones, that count as activating a unit."""


def area_under_curve(high: Floats, low: Floats) -> float:
    """Return the probability that one of `high` exceeds one of `low`; a tie counts half (Mann and Whitney 1947).

    Both are one-dimensional. NaN if either is empty.
    """
    if not len(high) or not len(low):
        return float("nan")
    # By ranks, which count each tie half without comparing all pairs.
    ranks, n = stats.rankdata(np.concatenate([high, low])), len(high)
    # The sum of ranks less the smallest possible one counts the pairs won.
    return float((ranks[:n].sum() - n * (n + 1) / 2) / (n * len(low)))


def measure_choices(activations: ArrayLike, presence: Sequence[float | None]) -> float | None:
    """Return the accuracy of two-alternative forced choice: does the label describe an activating image better than
    another one?

    Equal descriptions count half. Activations (n,) and presence (n,) in [0, 1] are of the same images; presence is None
    if it could not be judged. Activating images are the strongest `STRONG`, the others those up to the median. None if
    either side is empty.
    """
    acts = np.asarray(activations, dtype=np.float64)
    said = np.array([np.nan if each is None else each for each in presence], dtype=np.float64)
    known = np.isfinite(acts) & np.isfinite(said)
    acts, said = acts[known], said[known]
    if not len(acts):
        return None
    middle = float(np.median(acts))
    # At least half as far above the median as the strongest image, so that of a rare concept only images that show it
    # count.
    bound = max(float(np.sort(acts)[-max(1, round(STRONG * len(acts)))]), (middle + float(acts.max())) / 2)
    # Where most images tie at the median, the strongest share would include them.
    strong, weak = said[(acts >= bound) & (acts > middle)], said[acts <= middle]
    return area_under_curve(strong, weak) if len(strong) and len(weak) else None


def average_precision(scores: Floats, truth: ArrayLike) -> float:
    """Return the mean of the precision at the rank of each positive, best score first; NaN without positives.

    `scores` and `truth` have shape (n,). Truth is bool, or a degree in [0, 1].
    """
    shares = np.asarray(truth, np.float64)
    return float(weighted_average_precision(scores, shares, np.ones((1, len(shares))))[0])


def weighted_average_precision(scores: Floats, truth: Floats, weights: Floats) -> NDArray[np.float64]:
    """Return the average precision for each row of non-negative weights (resamples, n): (resamples,)."""
    # Stable: equal scores are grouped below, whatever their order.
    order = np.argsort(-scores, kind="stable")
    ranked, heavy = scores[order], np.asarray(weights[:, order], np.float64)
    hits = heavy * truth[order]
    last = np.append(ranked[1:] != ranked[:-1], True)[: len(ranked)]  # last rank of each group of equal scores
    # Equal scores share the precision at the end of their group, so that the order of the input does not matter.
    ends = np.flatnonzero(last)
    above, found = np.cumsum(heavy, 1)[:, ends], np.cumsum(hits, 1)[:, ends]
    gains = np.diff(found, axis=1, prepend=0)
    precision = np.divide(found, above, out=np.zeros_like(found), where=above > 0)
    total = hits.sum(1)
    return np.divide((precision * gains).sum(1), total, out=np.full_like(total, np.nan), where=total > 0)
