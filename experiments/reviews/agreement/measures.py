"""Cohen's kappa, Fleiss' kappa and Krippendorff's alpha, each with n and a bootstrap interval over items.

Alpha comes from the library `krippendorff`, intervals from SciPy. Each kappa is one formula that is evaluated on all
resamples at once. Results are cached. An undefined measure gives a reason instead of a number. The libraries are
imported on first use, so that pages without agreement start without them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from experiments.display.plots import Axis, Interval
from experiments.reviews.agreement.ratings import Numbers, Ratings
from workers.record.estimates import Estimate

MIN_RELIABLE_ITEMS = 30
"""Below this number of items, a page warns that an estimate can be far off."""
MIN_INTERVAL_ITEMS = 5
"""Below this number of items, there is no interval."""
# A fixed seed: a page that is opened twice shows the same interval.
SEED, MAX_RESAMPLES, MIN_RESAMPLES, WORK = 20111, 999, 199, 1_000_000
"""Of the bootstrap. `WORK` bounds resamples times items, so large queues get fewer resamples."""
LOST = 0.05
"""If more than this share of resamples has no value, no interval is given."""

ONE_REVIEWER = "There is one reviewer alone."
NO_ITEM = "No item has two reviews yet."
ONE_ITEM = "One item has two reviews: too few to tell agreement from chance."
ONE_VALUE = "All gave the same: agreement by chance cannot be told from agreement."
UNEVEN = "No two items have the same number of reviews, as Fleiss' kappa needs."

UNDEFINED = 2.0
"""Value of a resample for which the measure is undefined. Real measures never exceed 1."""
BATCH = 100
AXIS = Axis(-0.5, 1.0, 0, 1000)
"""Range of the plots. Lower values are drawn at the left end."""

Statistic = Callable[..., Numbers]
"""Maps samples of items, (..., n) positions, to a value for each sample. The last axis may be named."""


@dataclass(frozen=True)
class AgreementEstimate(Estimate):
    """A measure over `n` items. There is an interval if there are enough items."""

    raters: int = 0

    @property
    def few(self) -> bool:
        return self.value is not None and self.n < MIN_RELIABLE_ITEMS

    @property
    def interval(self) -> Interval | None:
        """Return the value with its interval on the axis of the plots; None without a value."""
        return None if self.value is None else Interval.on(AXIS, self.value, self.low, self.high)


@lru_cache(maxsize=1024)
def krippendorff_alpha(ratings: Ratings, with_interval: bool = True) -> AgreementEstimate:
    """Compute alpha over all reviewers, with any number of ratings per item: ordinal for scores, nominal for the
    verdict."""
    counts, line = ratings.counts, ratings.line
    if why := _explain_undefined(counts, len(ratings.reviewers)):
        return AgreementEstimate(n=len(counts), why=why)

    def alpha_of(items: NDArray[np.intp]) -> float:
        import krippendorff

        some = counts[items]
        # The library raises an error for ratings of a single value.
        if (some.sum(axis=0) > 0).sum() < 2:
            return UNDEFINED
        return float(
            krippendorff.alpha(value_counts=some, value_domain=list(line.values), level_of_measurement=line.level)
        )

    def statistic(items: NDArray[np.intp], axis: int = -1) -> Numbers:
        return np.apply_along_axis(alpha_of, axis, items)

    return _estimate_agreement(len(counts), statistic, with_interval=with_interval)


@lru_cache(maxsize=1024)
def fleiss_kappa(ratings: Ratings) -> AgreementEstimate:
    """Compute (P - Pe) / (1 - Pe) of Fleiss (1971), where P is the share of agreeing pairs. Values are nominal."""
    counts = ratings.counts
    if why := _explain_undefined(counts, len(ratings.reviewers)):
        return AgreementEstimate(n=len(counts), why=why)
    opinions = counts.sum(axis=1)
    # The formula needs equally many ratings per item: only items with the most common number count
    raters = int(np.bincount(opinions).argmax())
    even = counts[opinions == raters]
    if len(even) < 2:
        return AgreementEstimate(n=len(even), why=UNEVEN)
    # P_i of Fleiss (1971): agreeing pairs over all pairs of an item.
    agreeing = ((even**2).sum(axis=1) - raters) / (raters * (raters - 1))

    def statistic(items: NDArray[np.intp], axis: int = -1) -> Numbers:
        observed = np.mean(agreeing[items], axis)
        expected = sum(np.mean(column[items] / raters, axis) ** 2 for column in even.T)
        return _disagreement_ratio(1 - observed, 1 - np.asarray(expected))

    return _estimate_agreement(len(even), statistic, raters)


@lru_cache(maxsize=1024)
def cohen_kappa(ratings: Ratings, one: int, other: int, with_interval: bool = True) -> AgreementEstimate:
    """Compute 1 - observed / expected disagreement of two reviewers: unweighted for the verdict (Cohen 1960), with
    quadratic weights for scores (Cohen 1968)."""
    first, second = ratings.pair(one, other)
    if len(first) < 2:
        return AgreementEstimate(n=len(first), why=ONE_ITEM if len(first) else NO_ITEM)

    def statistic(items: NDArray[np.intp], axis: int = -1) -> Numbers:
        x, y = first[items], second[items]
        if ratings.line.level == "nominal":
            # Values that only the other reviewer gave add nothing, since one factor is 0.
            chance = sum(np.mean(x == value, axis) * np.mean(y == value, axis) for value in np.unique(x))
            return _disagreement_ratio(np.mean(x != y, axis), 1 - chance)
        expected = np.mean(x**2, axis) + np.mean(y**2, axis) - 2 * np.mean(x, axis) * np.mean(y, axis)
        return _disagreement_ratio(np.mean((x - y) ** 2, axis), expected)

    return _estimate_agreement(len(first), statistic, with_interval=with_interval)


def _explain_undefined(counts: NDArray[np.int64], reviewers: int) -> str:
    """Return why a measure over all reviewers is undefined; "" if it is defined."""
    if reviewers < 2:
        return ONE_REVIEWER
    if len(counts) < 2:
        return NO_ITEM if not len(counts) else ONE_ITEM
    return ONE_VALUE if (counts.sum(axis=0) > 0).sum() < 2 else ""


def _disagreement_ratio(observed: Numbers, expected: Numbers) -> Numbers:
    """Return 1 - observed / expected disagreement, or `UNDEFINED` if none is expected."""
    # Sums of floats: what should be 0 may be slightly above it.
    known = expected > 1e-12
    return np.where(known, 1 - observed / np.where(known, expected, 1.0), UNDEFINED)


def _estimate_agreement(n: int, statistic: Statistic, raters: int = 0, with_interval: bool = True) -> AgreementEstimate:
    """Compute the statistic over all items, with its percentile interval over resampled items."""
    value = round(float(statistic(np.arange(n))), 12) + 0.0  # 1 - 1 is 0, not 1.1e-16 or -0
    if value == UNDEFINED:
        return AgreementEstimate(n=n, why=ONE_VALUE, raters=raters)
    low, high = estimate_interval(n, statistic) if with_interval and n >= MIN_INTERVAL_ITEMS else (None, None)
    return AgreementEstimate(value, low, high, n, raters=raters)


def estimate_interval(n: int, statistic: Statistic) -> tuple[float, float] | tuple[None, None]:
    """Return the 95 % bootstrap interval, or None if too many resamples have no value."""
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
    # SciPy's own interval would include the marks of undefined resamples.
    values = found.bootstrap_distribution[found.bootstrap_distribution < UNDEFINED]
    if len(values) < (1 - LOST) * len(found.bootstrap_distribution):
        return None, None
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def resamples(n: int) -> int:
    return max(MIN_RESAMPLES, min(MAX_RESAMPLES, WORK // n))
