"""Cohen's kappa, Fleiss' kappa and Krippendorff's alpha, each with n and a bootstrap interval over items.

Alpha comes from the library `krippendorff`, intervals from SciPy; the kappas are one formula each, which all resamples
take at once. Where a measure is undefined, it says why instead of giving a number. The libraries are loaded on first
use: pages that show no agreement start without them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from experiments.reviews.agreement.ratings import Level, Numbers, Ratings

FEW = 30
"""Items below which a page warns that an estimate can be far off."""
LEAST = 5
"""Items below which there is no interval."""
SEED, MOST_RESAMPLES, LEAST_RESAMPLES, WORK = 20111, 999, 199, 1_000_000
"""Of the bootstrap: resamples, fewer where there are so many items that their product exceeds the work."""
LOST = 0.05
"""Share of resamples without a value above which an interval would say too little."""

ONE_REVIEWER = "There is one reviewer alone."
NO_ITEM = "No item has two opinions yet."
ONE_ITEM = "One item has two opinions: too few to tell agreement from chance."
ONE_VALUE = "All gave the same: agreement by chance cannot be told from agreement."
UNEVEN = "No two items have the same number of opinions, as Fleiss' kappa needs."

UNDEFINED = 2.0
"""Stands for the value of a resample that has none: no measure exceeds 1."""
BATCH = 100

Statistic = Callable[..., Numbers]
"""From samples of items, ... x n positions, to a value for each sample. The axis, which is the last, may be named."""


@dataclass(frozen=True)
class Figure:
    """A measure over `n` items, its 95 % interval if there are enough, and why it has no value where it has none."""

    n: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    why: str = ""
    raters: int = 0

    @property
    def few(self) -> bool:
        return self.value is not None and self.n < FEW


def krippendorff_alpha(ratings: Ratings, with_interval: bool = True) -> Figure:
    """Of all reviewers, any number of opinions on an item; ordinal for scores, nominal for the verdict."""
    counts = ratings.counts
    why = explain_undefined(counts, len(ratings.reviewers))
    if why:
        return Figure(len(counts), why=why)
    return of_alpha(counts.tobytes(), counts.shape, ratings.line.values, ratings.line.level, with_interval)


def fleiss_kappa(ratings: Ratings) -> Figure:
    """Of items with equally many opinions, the number that most items have; values are nominal."""
    counts = ratings.counts
    why = explain_undefined(counts, len(ratings.reviewers))
    if why:
        return Figure(len(counts), why=why)
    opinions = counts.sum(axis=1)
    usual = int(np.bincount(opinions).argmax())
    even = counts[opinions == usual]
    if len(even) < 2:
        return Figure(len(even), why=UNEVEN)
    if why := explain_undefined(even, usual):
        return Figure(len(even), why=why, raters=usual)
    return of_fleiss(even.tobytes(), even.shape, usual)


def cohen_kappa(ratings: Ratings, one: int, other: int) -> Figure:
    """Of two reviewers: plain for the verdict, with quadratic weights for scores."""
    x, y = ratings.pair(one, other)
    why = NO_ITEM if not len(x) else ONE_ITEM if len(x) == 1 else ""
    if not why and np.unique(np.concatenate([x, y])).size == 1:
        why = ONE_VALUE
    return Figure(len(x), why=why) if why else of_pairs(x.tobytes(), y.tobytes(), ratings.line.level)


def explain_undefined(counts: NDArray[np.int64], reviewers: int) -> str:
    """Why a measure of all reviewers is undefined; "" if it is not."""
    if reviewers < 2:
        return ONE_REVIEWER
    if len(counts) < 2:
        return NO_ITEM if not len(counts) else ONE_ITEM
    return ONE_VALUE if (counts.sum(axis=0) > 0).sum() < 2 else ""


# --- the measures as functions of resampled items; what was computed once is kept ---


@lru_cache(maxsize=1024)
def of_alpha(data: bytes, shape: tuple[int, ...], values: tuple[int, ...], level: Level, with_interval: bool) -> Figure:
    counts = np.frombuffer(data, dtype=np.int64).reshape(shape)

    def statistic(items: NDArray[np.intp], axis: int = -1) -> Numbers:
        return np.apply_along_axis(lambda chosen: alpha_of(counts[chosen], values, level), axis, items)

    return figure(len(counts), statistic, with_interval=with_interval)


@lru_cache(maxsize=1024)
def of_fleiss(data: bytes, shape: tuple[int, ...], raters: int) -> Figure:
    counts = np.frombuffer(data, dtype=np.int64).reshape(shape)
    return figure(len(counts), lambda items, axis=-1: fleiss_of(counts, items, raters, axis), raters)


@lru_cache(maxsize=1024)
def of_pairs(first: bytes, second: bytes, level: Level) -> Figure:
    x, y = np.frombuffer(first), np.frombuffer(second)

    def statistic(items: NDArray[np.intp], axis: int = -1) -> Numbers:
        return cohen_of(x[items], y[items], level, axis)

    return figure(len(x), statistic)


def alpha_of(counts: NDArray[np.int64], values: tuple[int, ...], level: Level) -> float:
    """Krippendorff's alpha of items x values; `UNDEFINED` if all are of one value."""
    import krippendorff

    if (counts.sum(axis=0) > 0).sum() < 2:
        return UNDEFINED
    return float(krippendorff.alpha(value_counts=counts, value_domain=list(values), level_of_measurement=level))


def fleiss_of(counts: NDArray[np.int64], items: NDArray[np.intp], raters: int, axis: int = -1) -> Numbers:
    """(P - Pe) / (1 - Pe) of Fleiss (1971), P the share of agreeing pairs; `UNDEFINED` if all are of one value."""
    agreeing = ((counts**2).sum(axis=1) - raters) / (raters * (raters - 1))
    observed = np.mean(agreeing[items], axis)
    expected = sum(np.mean(column[items] / raters, axis) ** 2 for column in counts.T)
    return ratio(1 - observed, 1 - np.asarray(expected))


def cohen_of(x: Numbers, y: Numbers, level: Level, axis: int = -1) -> Numbers:
    """1 - observed / expected disagreement (Cohen 1960; with squared distances 1968), or `UNDEFINED`."""
    if level == "nominal":
        observed = np.mean(x != y, axis)
        expected = 1 - sum(np.mean(x == value, axis) * np.mean(y == value, axis) for value in np.unique(x))
    else:
        observed = np.mean((x - y) ** 2, axis)
        expected = np.mean(x**2, axis) + np.mean(y**2, axis) - 2 * np.mean(x, axis) * np.mean(y, axis)
    return ratio(observed, expected)


def ratio(observed: Numbers, expected: Numbers) -> Numbers:
    """1 - observed / expected disagreement, `UNDEFINED` where none is expected."""
    known = expected > 1e-12
    return np.where(known, 1 - observed / np.where(known, expected, 1.0), UNDEFINED)


def figure(n: int, statistic: Statistic, raters: int = 0, with_interval: bool = True) -> Figure:
    """The statistic of all items, and its percentile interval over resampled ones."""
    value = round(float(statistic(np.arange(n))), 12) + 0.0  # 1 - 1 is 0, not 1.1e-16 or -0
    if value == UNDEFINED:
        return Figure(n, why=ONE_VALUE, raters=raters)
    low, high = interval(n, statistic) if with_interval and n >= LEAST else (None, None)
    return Figure(n, value, low, high, raters=raters)


def interval(n: int, statistic: Statistic) -> tuple[float, float] | tuple[None, None]:
    """None where too many resamples hold a single value, so that the rest would say too little."""
    from scipy.stats import bootstrap

    found = bootstrap(
        (np.arange(n),),
        statistic,
        vectorized=True,
        n_resamples=resamples(n),
        batch=BATCH,
        method="percentile",
        rng=np.random.default_rng(SEED),
    )
    values = found.bootstrap_distribution[found.bootstrap_distribution < UNDEFINED]
    if len(values) < (1 - LOST) * len(found.bootstrap_distribution):
        return None, None
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def resamples(n: int) -> int:
    return max(LEAST_RESAMPLES, min(MOST_RESAMPLES, WORK // n))
