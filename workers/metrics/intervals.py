"""Figures with 95 % intervals: shares, counts, means, medians, differences, ratios. Intervals are over the sampled
units.

All are exact, or use a score or Student's t. A missing figure or interval is None with a reason. No function warns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, stats

from workers.record.estimates import CONFIDENCE, NORMAL_QUANTILE, Estimate, bound_share, find_student

Floats = NDArray[np.float64]

_NEAR = 1e-9


def estimate_share(hits: float, n: int) -> Estimate:
    """Return the share of `hits` in `n`, with Wilson's interval. Raises ValueError if `hits` is not in 0 … n."""
    if not 0 <= hits <= n:
        raise ValueError(f"{hits} hits of {n} are no share: count hits among the n.")
    if not n:
        return Estimate(None, why="nothing was counted")
    return Estimate(hits / n, *bound_share(hits / n, n), n)


def estimate_area(area: float, high: int, low: int) -> Estimate:
    """Estimate an area under the curve of `high` against `low` independent samples, with Newcombe's interval (2006).

    His method 5: the areas whose own standard error, by Hanley and McNeil with the mean size in place of each, reaches
    `area`.
    """
    if np.isnan(area) or not high or not low:
        return Estimate(None, n=high + low, why="one of the two sides is empty")
    # Not a bootstrap, which shrinks to a point if the samples do not overlap.
    z, extra = NORMAL_QUANTILE, (high + low) / 2 - 1

    def excess(true: float) -> float:
        # Hanley and McNeil's variance, with the mean size in place of each.
        variance = true * (1 - true) * (1 + extra * ((1 - true) / (2 - true) + true / (1 + true))) / (high * low)
        return (area - true) ** 2 - z * z * variance

    # Just beside the area the variance outweighs the distance; at an area of 0 or 1 both are 0
    bottom = 0.0 if area <= _NEAR else float(optimize.brentq(excess, 0.0, area - _NEAR))
    top = 1.0 if area >= 1 - _NEAR else float(optimize.brentq(excess, area + _NEAR, 1.0))
    return Estimate(area, bottom, top, high + low)


def estimate_mean(values: ArrayLike, clusters: Sequence[object] | None = None) -> Estimate:
    """Estimate the mean of values (n,) with Student's t on n - 1 degrees of freedom.

    `clusters` names what each value was measured on. The standard error is then robust to correlation within
    clusters (Liang and Zeger 1986, with the small-sample factor g / (g - 1)), on clusters - 1 degrees. NaN is left
    out.
    """
    kept, names = _keep_finite(values, clusters)
    # Without clusters every value is a cluster of its own.
    place = np.arange(len(kept)) if names is None else np.unique(names, return_inverse=True)[1]
    groups = int(place.max()) + 1 if len(kept) else 0
    if not groups:
        return Estimate(None, why="there are no values")
    # Values of one cluster are not independent, so their errors are summed before they are squared.
    mean = float(kept.mean())
    errors = np.bincount(place, kept - mean)
    spread = float((errors**2).sum() * groups / max(groups - 1, 1))
    # One cluster has no spread; `_bound` leaves its interval out.
    reach = float(np.sqrt(spread)) / len(kept) * (find_student(groups - 1) if groups > 1 else 0.0)
    return _bound(mean, mean - reach, mean + reach, groups)


def estimate_counts(counts: ArrayLike) -> Estimate:
    """Estimate the mean of non-negative counts (n,) with Garwood's exact limits of a Poisson mean (1936).

    NaN is left out.
    """
    kept, _ = _keep_finite(counts)
    found = estimate_mean(kept)
    if found.value is None:
        return found
    total, tail = float(kept.sum()), (1 - CONFIDENCE) / 2
    # The limit is 0 where nothing was counted; the gamma distribution has no shape 0.
    low = stats.gamma.ppf(tail, total) if total else 0.0
    high = stats.gamma.isf(tail, total + 1)
    ends = [float(low) / len(kept), float(high) / len(kept)]
    # They vary more than Poisson counts, whose limits would be too narrow.
    if len(kept) > 1 and kept.var(ddof=1) > found.value:
        ends += [max(0.0, each) for each in (found.low, found.high) if each is not None]
    return Estimate(found.value, min(ends), max(ends), len(kept))


def estimate_median(values: ArrayLike) -> Estimate:
    """Estimate the median of values (n,) with the interval of the sign test (Conover 1999, section 3.2), valid for any
    distribution.

    Needs 6 values. NaN is left out.
    """
    kept, _ = _keep_finite(values)
    if not len(kept):
        return Estimate(None, why="there are no values")
    median = float(np.median(kept))
    found = stats.quantile_test(kept, p=0.5).confidence_interval(CONFIDENCE)
    if np.isnan(found.low) or np.isnan(found.high):
        return Estimate(
            median, n=len(kept), why=f"{len(kept)} values are too few for an interval of a median: 6 are needed"
        )
    return _bound(median, float(found.low), float(found.high), len(kept))


def estimate_difference(first: ArrayLike, second: ArrayLike) -> Estimate:
    """Estimate the mean of first - second, both (n,) for the same units in the same order.

    Tango's score interval (1998) if all values are 0 or 1, else Student's. Units with a NaN are left out; `n` counts
    the others. Raises ValueError for unequal lengths.
    """
    one, two = _vector(first), _vector(second)
    if len(one) != len(two):
        raise ValueError(f"{len(one)} and {len(two)} values are no pairs: give both for the same units, NaN for none.")
    both = np.isfinite(one) & np.isfinite(two)
    one, two = one[both], two[both]
    # Student's interval of zeros and ones may end beyond 1, or have no width.
    if len(one) and {*one, *two} <= {0.0, 1.0}:
        return _score_pairs(int((one > two).sum()), int((two > one).sum()), len(one))
    return estimate_mean(one - two)


def estimate_contrast(first: ArrayLike, second: ArrayLike) -> Estimate:
    """Estimate the mean of `first` (n,) minus that of `second` (m,) for independent units, with Welch's interval
    (1947).

    NaN is left out. An interval needs two values on each side.
    """
    one, two = (_keep_finite(each)[0] for each in (first, second))
    n = len(one) + len(two)
    if not len(one) or not len(two):
        return Estimate(None, n=n, why="one of the two sides is empty")
    value = float(one.mean() - two.mean())
    if min(len(one), len(two)) == 1:
        return Estimate(value, n=n, why="one value has no spread")
    parts = np.array([each.var(ddof=1) / len(each) for each in (one, two)])
    if not parts.any():
        return _bound(value, value, value, n)
    degrees = float(parts.sum() ** 2 / (parts**2 / (np.array([len(one), len(two)]) - 1)).sum())
    reach = find_student(degrees) * float(np.sqrt(parts.sum()))
    return _bound(value, value - reach, value + reach, n)


def _score_pairs(gained: int, lost: int, n: int) -> Estimate:
    """Return the difference of two shares of the same n, of which `gained` have the first alone and `lost` the
    second."""
    z = NORMAL_QUANTILE
    value = (gained - lost) / n

    # Score equation: the difference whose own standard error reaches the measured one.
    def excess(true: float) -> float:
        linear = (2 * n - gained + lost) * true - gained - lost
        root = np.sqrt(max(0.0, linear * linear + 8 * n * lost * true * (1 - true)))
        variance = n * ((root - linear) / (2 * n) + true * (1 - true))
        return float((gained - lost - n * true) ** 2 - z * z * variance)

    # The ends -1 and 1 are reached exactly, where the search would find no change of sign.
    bottom = -1.0 if value <= -1 + _NEAR else float(optimize.brentq(excess, -1.0, value - _NEAR))
    top = 1.0 if value >= 1 - _NEAR else float(optimize.brentq(excess, value + _NEAR, 1.0))
    return Estimate(value, bottom, top, n)


def estimate_gap(reached: ArrayLike, base: ArrayLike, ceiling: ArrayLike) -> Estimate:
    """Estimate which share of the gap from `base` to `ceiling` was closed.

    The share is (mean reached - mean base) / (mean ceiling - mean base), with Fieller's interval of a ratio of means
    (1954). All are (seeds,) for the same seeds in the same order. Values below 0 and above 1 are possible. The
    figure is None without a gap, and has no interval if the gap may be 0. Raises ValueError for unequal lengths.
    """
    sides = [_vector(each) for each in (reached, base, ceiling)]
    if len({len(each) for each in sides}) > 1:
        raise ValueError(f"{[len(each) for each in sides]} values are no triples: give all three for the same seeds.")
    one, two, three = np.stack(sides)[:, np.isfinite(np.stack(sides)).all(0)]
    n, closed, gap = len(one), one - two, three - two
    if not n:
        return Estimate(None, why="there are no values")
    # A ratio to a negative gap would turn better into worse.
    if gap.mean() <= 0:
        return Estimate(None, n=n, why="there is no gap")
    value = float(closed.mean() / gap.mean())
    if n == 1:
        return Estimate(value, n=n, why="one value has no spread")
    # Fieller's limits solve a quadratic equation in the ratio.
    (own, joint), (_, other) = np.cov(closed, gap) * find_student(n - 1) ** 2 / n
    square, linear = gap.mean() ** 2 - other, closed.mean() * gap.mean() - joint
    # The denominator's interval includes 0, so the ratio has no bounds.
    if square <= 0:
        return Estimate(value, n=n, why="the gap itself may be 0")
    within = linear**2 - square * (closed.mean() ** 2 - own)
    reach = np.sqrt(within) if within > _NEAR * linear**2 else 0.0  # of equal seeds only rounding is left
    return _bound(value, float((linear - reach) / square), float((linear + reach) / square), n)


def _bound(value: float, low: float, high: float, n: int) -> Estimate:
    """Return the estimate with its interval, unless that is a point."""
    if n == 1:
        return Estimate(value, n=n, why="one value has no spread")
    # So few or so equal values tell nothing about others.
    if high - low <= _NEAR * max(1.0, abs(value)):
        return Estimate(value, n=n, why=f"all {n} are equal, which says nothing of how others vary")
    return Estimate(value, low, high, n)


def _keep_finite(values: ArrayLike, clusters: Sequence[object] | None = None) -> tuple[Floats, NDArray[np.str_] | None]:
    """Return the finite values and the names of their clusters. Raises ValueError if their lengths differ."""
    every = _vector(values)
    there = np.isfinite(every)
    if clusters is None:
        return every[there], None
    if len(clusters) != len(every):
        raise ValueError(f"{len(clusters)} clusters for {len(every)} values: name the cluster of each.")
    return every[there], np.array([str(name) for name in clusters])[there]


def _vector(values: ArrayLike) -> Floats:
    """Convert to a vector; None becomes NaN."""
    return np.asarray(values, np.float64).reshape(-1)
