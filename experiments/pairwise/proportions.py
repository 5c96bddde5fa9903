"""Proportions of votes with their intervals. Votes on one unit are not independent, so intervals are over units."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from workers.record.estimates import NORMAL_QUANTILE, bound_share, find_student


@dataclass(frozen=True)
class Proportion:
    """`hits` of `n` with a 95 % interval; the values are None if n is 0."""

    hits: int
    n: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    units: int = 0
    """Number of units that the votes are on."""

    @property
    def decides(self) -> int:
        """Return 1 if the whole interval is above one half, -1 if below, else 0."""
        if self.low is None or self.high is None:
            return 0
        return (self.low > 0.5) - (self.high < 0.5)

    @property
    def said(self) -> str:
        """Return the proportion in words, such as "64 % (7 of 11; 35 to 85 %)"."""
        if self.value is None or self.low is None or self.high is None:
            return "none yet"
        return f"{self.value:.0%} ({self.hits} of {self.n}; {self.low:.0%} to {self.high:.0%})".replace("%", " %")


def measure_proportion(votes: Sequence[tuple[Hashable, bool]]) -> Proportion:
    """Compute the share of votes that hold, each given with its unit, and its 95 % interval.

    The interval is Wilson's (1927) for the number of independent votes that would vary as much (Kish 1965). That
    number comes from the variance between units, with Student's t for few units (Korn and Graubard 1998). If all
    votes agree, it is the number of units.
    """
    n, hits = len(votes), sum(holds for _, holds in votes)
    if not n:
        return Proportion(hits, n)
    # 1. Without variance, count each unit as one independent vote
    share, units = hits / n, Counter(unit for unit, _ in votes)
    size = float(len(units))
    if 1 < len(units) < n and 0 < hits < n:
        # 2. Variance of the share when units are sampled (linearized ratio estimator)
        errors: dict[Hashable, float] = defaultdict(float)
        for unit, holds in votes:
            errors[unit] += holds - share
        variance = sum(each**2 for each in errors.values()) * len(units) / (len(units) - 1) / n**2
        few = (NORMAL_QUANTILE / find_student(len(units) - 1)) ** 2
        size = min(float(n), share * (1 - share) * few / variance) if variance > 0 else float(n)
    return Proportion(hits, n, share, *bound_share(share, size), len(units))
