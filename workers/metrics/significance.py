"""Test hypotheses beside the intervals, and adjust p-values if there are several.

`holm` is written here because SciPy lacks it. It has Benjamini's and Hochberg's, which `record/estimates.py` applies
for pages too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

_MAX_EXACT, _SIGNS = 50, 10_000
"""Maximum number of pairs for an exact test, and number of random sign assignments."""


@dataclass(frozen=True)
class RankTest:
    """A test whether paired differences tend to one side of 0."""

    p: float | None
    """Two-sided, in [0, 1]."""
    n: int
    """Number of pairs that differ."""
    why: str = ""
    """Why there is no p-value."""


def compare_ranks(first: ArrayLike, second: ArrayLike) -> RankTest:
    """Return Wilcoxon's signed-rank test (1945) of values (n,) for the same units in the same order.

    Units with a NaN and ties are left out. Raises ValueError for unequal lengths.
    """
    one, two = (np.asarray(each, np.float64).reshape(-1) for each in (first, second))
    if len(one) != len(two):
        raise ValueError(f"{len(one)} and {len(two)} values are no pairs: give both for the same units, NaN for none.")
    # Ties say nothing of the direction, and Wilcoxon leaves them out.
    differences = one - two
    differences = differences[np.isfinite(differences) & (differences != 0)]
    if not len(differences):
        return RankTest(None, 0, "no pair differs")
    n, sizes = len(differences), np.unique(np.abs(differences))
    # Scores of 0 and 1 have differences of one size, which have no ranks: this is the sign test.
    if len(sizes) == 1:
        return RankTest(float(stats.binomtest(int((differences > 0).sum()), n).pvalue), n)
    # A fixed seed: the same data give the same p-value.
    drawn = stats.PermutationMethod(n_resamples=_SIGNS, rng=np.random.default_rng(0))
    # Equal differences rule out the exact distribution.
    method = "asymptotic" if n > _MAX_EXACT else "exact" if len(sizes) == n else drawn
    return RankTest(float(stats.wilcoxon(differences, method=method).pvalue), n)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for the whole family (Holm 1979): below 0.05, at most 1 family in 20 has a false positive.

    Returned in the given order, in [0, 1]. NaN, for a test that could not be made, stays NaN and does not count.
    Raises ValueError for values outside [0, 1]. For many tests at once use `record.estimates.benjamini_hochberg`.
    """
    given = np.asarray(p_values, np.float64)
    there = np.flatnonzero(~np.isnan(given))
    if ((given[there] < 0) | (given[there] > 1)).any():
        raise ValueError(f"{list(p_values)} are no p-values: they lie in [0, 1].")
    order = there[np.argsort(given[there], kind="stable")]
    adjusted = np.full(len(given), np.nan)
    # An adjusted value is never below one before it.
    # Multiplied by the number of tests that are left.
    adjusted[order] = np.minimum(np.maximum.accumulate(given[order] * np.arange(len(order), 0, -1)), 1.0)
    return [float(each) for each in adjusted]
