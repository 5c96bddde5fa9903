"""Tests of hypotheses beside the intervals, and what becomes of their p-values where there are several.

SciPy lacks Holm's adjustment. It has Benjamini's and Hochberg's, which `record.estimates` applies for pages too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

_MAX_EXACT, _SIGNS = 50, 10_000
"""Pairs that are tested exactly, and ways to give them signs that are tried."""


@dataclass(frozen=True)
class RankTest:
    """Whether paired differences are as often above 0 as below."""

    p: float | None
    """Two-sided, in [0, 1]."""
    n: int
    """Pairs that differ."""
    why: str = ""
    """Why there is no p-value."""


def compare_ranks(first: ArrayLike, second: ArrayLike) -> RankTest:
    """Wilcoxon's signed-rank test (1945) of values (n,) of the same units in the same order.

    Units that lack either (NaN) and ties are left out. Where all differences are of one size, as of scores that are 0
    or 1, it is the sign test. Exact up to 50 pairs: with equal differences over all signs, or 10,000 drawn ones; else
    normal. Raises ValueError for unequal lengths.
    """
    one, two = (np.asarray(each, np.float64).reshape(-1) for each in (first, second))
    if len(one) != len(two):
        raise ValueError(f"{len(one)} and {len(two)} values are no pairs: give both for the same units, NaN for none.")
    differences = one - two
    differences = differences[np.isfinite(differences) & (differences != 0)]
    if not len(differences):
        return RankTest(None, 0, "no pair differs")
    n, sizes = len(differences), np.unique(np.abs(differences))
    if len(sizes) == 1:
        return RankTest(float(stats.binomtest(int((differences > 0).sum()), n).pvalue), n)
    drawn = stats.PermutationMethod(n_resamples=_SIGNS, rng=np.random.default_rng(0))
    method = "asymptotic" if n > _MAX_EXACT else "exact" if len(sizes) == n else drawn
    return RankTest(float(stats.wilcoxon(differences, method=method).pvalue), n)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted for the whole family (Holm 1979): below 0.05, at most 1 family in 20 has a false one.

    In the order given, in [0, 1]. NaN, a test that could not be made, stays NaN and does not count. Raises ValueError
    for one outside [0, 1]. For many tests at once there is `record.estimates.benjamini_hochberg`.
    """
    given = np.asarray(p_values, np.float64)
    there = np.flatnonzero(~np.isnan(given))
    if ((given[there] < 0) | (given[there] > 1)).any():
        raise ValueError(f"{list(p_values)} are no p-values: they lie in [0, 1].")
    order = there[np.argsort(given[there], kind="stable")]
    adjusted = np.full(len(given), np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(given[order] * np.arange(len(order), 0, -1)), 1.0)
    return [float(each) for each in adjusted]
