"""Figures with their 95 % intervals: shares, means, differences, ratios. The unit of sampling is what varies.

A figure or an interval that cannot be had is None and says why; nothing here warns. Seeds are arguments, so that the
same values give the same interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, stats

from workers.record.estimates import Estimate

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
RESAMPLES = 10_000
_BLOCK = 4_000_000
"""Numbers held at a time while resampling, so that a large dataset does not fill the memory."""
_NEAR = 1e-9
_LOST = 0.05
"""Share of resamples in which a figure may be undefined before its interval is given up."""


def estimate_share(hits: float, n: int) -> Estimate:
    """The share of `hits` in `n`, with Wilson's interval (1927), which never leaves [0, 1] nor shrinks to a point.

    Raises ValueError if `hits` is not in 0 … n.
    """
    if not 0 <= hits <= n:
        raise ValueError(f"{hits} hits of {n} are no share: count hits among the n.")
    if not n:
        return Estimate(None, why="nothing was counted")
    z = float(stats.norm.ppf((1 + CONFIDENCE) / 2))
    share, bend = hits / n, z * z / n
    middle = (share + bend / 2) / (1 + bend)
    reach = z * float(np.sqrt(share * (1 - share) / n + bend / (4 * n))) / (1 + bend)
    return Estimate(share, max(0.0, middle - reach), min(1.0, middle + reach), n)


def estimate_area(area: float, high: int, low: int) -> Estimate:
    """An area under the curve of `high` against `low` independent samples, with the interval of Newcombe (2006).

    His method 5: the areas whose own standard error, by Hanley and McNeil with the mean size in place of each, reaches
    `area`. Unlike a bootstrap it does not shrink to a point where the samples do not overlap at all.
    """
    if np.isnan(area) or not high or not low:
        return Estimate(None, n=high + low, why="one of the two sides is empty")
    z, extra = float(stats.norm.ppf((1 + CONFIDENCE) / 2)), (high + low) / 2 - 1

    def excess(true: float) -> float:
        variance = true * (1 - true) * (1 + extra * ((1 - true) / (2 - true) + true / (1 + true))) / (high * low)
        return (area - true) ** 2 - z * z * variance

    # Just beside the area the variance outweighs the distance; at an area of 0 or 1 both are 0
    bottom = 0.0 if area <= _NEAR else float(optimize.brentq(excess, 0.0, area - _NEAR))
    top = 1.0 if area >= 1 - _NEAR else float(optimize.brentq(excess, area + _NEAR, 1.0))
    return Estimate(area, bottom, top, high + low)


def estimate_mean(
    values: ArrayLike, clusters: Sequence[object] | None = None, *, seed: int = 0, resamples: int = RESAMPLES
) -> Estimate:
    """The mean of values (n,), with a percentile bootstrap over them (Efron 1979).

    With `clusters`, n names of whatever the values were measured on: whole clusters are resampled, since values of one
    are not independent, and every value keeps its weight. NaN is left out.
    """
    kept, names = _keep_finite(values, clusters)
    sums: Floats = kept
    sizes: Floats = np.ones_like(kept)
    if names is not None:
        place = np.unique(names, return_inverse=True)[1]
        sums, sizes = np.bincount(place, kept).astype(np.float64), np.bincount(place).astype(np.float64)

    def mean(counts: Floats) -> Floats:
        return (counts @ sums) / (counts @ sizes)

    return bootstrap(mean, len(sums), seed=seed, resamples=resamples)


def estimate_median(values: ArrayLike, *, seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """The median of values (n,), with a percentile bootstrap over them. NaN is left out."""
    kept, _ = _keep_finite(values)
    ordered = np.sort(kept)

    def median(counts: Floats) -> Floats:
        upto = np.cumsum(counts, 1)
        total = upto[:, -1:]
        lower, upper = ((upto < (total + step) / 2).sum(1) for step in (0, 1))
        last = len(ordered) - 1
        return (ordered[np.minimum(lower, last)] + ordered[np.minimum(upper, last)]) / 2

    return bootstrap(median, len(kept), seed=seed, resamples=resamples)


def estimate_difference(
    first: ArrayLike,
    second: ArrayLike,
    clusters: Sequence[object] | None = None,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Estimate:
    """The mean of first - second, both (n,) of the same units in the same order, with a paired bootstrap over units.

    A unit that lacks either (NaN) is left out; `n` says how many are left. Raises ValueError for unequal lengths.
    """
    one, two = _vector(first), _vector(second)
    if len(one) != len(two):
        raise ValueError(f"{len(one)} and {len(two)} values are no pairs: give both for the same units, NaN for none.")
    return estimate_mean(one - two, clusters, seed=seed, resamples=resamples)


def estimate_student(values: ArrayLike, clusters: Sequence[object] | None = None) -> Estimate:
    """The mean of values (n,), with Student's t on n - 1 degrees of freedom.

    With `clusters` the standard error is robust to their correlation (Liang and Zeger 1986, with the small-sample
    factor g / (g - 1)), on clusters - 1 degrees, as Inspect has it. NaN is left out.
    """
    kept, names = _keep_finite(values, clusters)
    place = np.arange(len(kept)) if names is None else np.unique(names, return_inverse=True)[1]
    groups = int(place.max()) + 1 if len(kept) else 0
    if not groups:
        return Estimate(None, why="there are no values")
    mean = float(kept.mean())
    if groups < 2:
        return Estimate(mean, n=groups, why="one value has no spread")
    errors = np.bincount(place, kept - mean)
    error = float(np.sqrt((errors**2).sum() * groups / (groups - 1))) / len(kept)
    reach = error * float(stats.t.ppf((1 + CONFIDENCE) / 2, groups - 1))
    return Estimate(mean, mean - reach, mean + reach, groups)


def estimate_gap(
    reached: ArrayLike, base: ArrayLike, ceiling: ArrayLike, *, seed: int = 0, resamples: int = RESAMPLES
) -> Estimate:
    """Which share of the gap from `base` to `ceiling` was closed: (mean reached - mean base) / (ceiling - base).

    All (seeds,), of the same seeds in the same order, which are resampled together. Below 0 and above 1 are possible.
    None where there is no gap to close. Raises ValueError for unequal lengths.
    """
    sides = [_vector(each) for each in (reached, base, ceiling)]
    if len({len(each) for each in sides}) > 1:
        raise ValueError(f"{[len(each) for each in sides]} values are no triples: give all three for the same seeds.")
    one, two, three = np.stack(sides)[:, np.isfinite(np.stack(sides)).all(0)]

    def share(counts: Floats) -> Floats:
        gap = counts @ (three - two)
        return np.divide(counts @ (one - two), gap, out=np.full_like(gap, np.nan), where=gap > 0)

    found = bootstrap(share, len(one), seed=seed, resamples=resamples)
    return found if found.value is not None or not len(one) else Estimate(None, n=len(one), why="there is no gap")


def bootstrap(statistic: Callable[[Floats], Floats], n: int, *, seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """A statistic of n things with its percentile interval.

    `statistic` takes how often each of the n counts, (resamples, n), and gives (resamples,), NaN where it is undefined.
    """
    if not n:
        return Estimate(None, why="there are no values")
    value = float(statistic(np.ones((1, n)))[0])
    if np.isnan(value):
        return Estimate(None, n=n, why="it is not defined for these values")
    if n == 1:
        return Estimate(value, n=n, why="one value has no spread")
    drawn = np.concatenate([statistic(counts) for counts in _draw_counts(n, resamples, seed)])
    drawn = drawn[np.isfinite(drawn)]
    if len(drawn) < (1 - _LOST) * resamples:
        return Estimate(value, n=n, why="too few values for an interval: it is undefined in many resamples")
    low, high = np.quantile(drawn, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
    return Estimate(value, float(low), float(high), n)


def _draw_counts(n: int, resamples: int, seed: int) -> Iterator[Floats]:
    """How often each of n things is drawn when n are, with replacement: blocks of (some resamples, n)."""
    rng = np.random.default_rng(seed)
    size = max(1, min(resamples, _BLOCK // n))
    for start in range(0, resamples, size):
        rows = min(size, resamples - start)
        drawn = rng.integers(0, n, (rows, n)) + n * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


def _keep_finite(values: ArrayLike, clusters: Sequence[object] | None = None) -> tuple[Floats, NDArray[np.str_] | None]:
    """Finite values, and the names of their clusters. Raises ValueError if there is not a name for each."""
    every = _vector(values)
    there = np.isfinite(every)
    if clusters is None:
        return every[there], None
    if len(clusters) != len(every):
        raise ValueError(f"{len(clusters)} clusters for {len(every)} values: name the cluster of each.")
    return every[there], np.array([str(name) for name in clusters])[there]


def _vector(values: ArrayLike) -> Floats:
    """None becomes NaN."""
    return np.asarray(values, np.float64).reshape(-1)
