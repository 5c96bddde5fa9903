"""Shares with their 95 % intervals (Wilson 1927), as pages, the API and tables write them. SciPy is loaded on use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """`hits` of `n`, with the interval that the share lies in; all None where there is nothing to divide."""

    hits: int
    n: int
    value: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def decides(self) -> int:
        """1 if the whole interval lies above one half, -1 if below, 0 if it holds the half or there is none."""
        if self.low is None or self.high is None:
            return 0
        return (self.low > 0.5) - (self.high < 0.5)

    @property
    def said(self) -> str:
        """In words, as "64 % (7 of 11; 35 to 85 %)"."""
        if self.value is None or self.low is None or self.high is None:
            return "none yet"
        return f"{self.value:.0%} ({self.hits} of {self.n}; {self.low:.0%} to {self.high:.0%})".replace("%", " %")


def share(hits: int, n: int) -> Share:
    """The share of `hits` in `n` with Wilson's interval."""
    if not n:
        return Share(hits, n)
    from scipy.stats import binomtest

    found = binomtest(hits, n).proportion_ci(0.95, method="wilson")
    return Share(hits, n, hits / n, float(found.low), float(found.high))
