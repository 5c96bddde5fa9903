"""A figure as it is kept and shown: never without its interval and the number of cases that it rests on; p-values where
there are many figures.

SciPy is loaded on first use: pages that show no interval and no test start without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist


@dataclass(frozen=True)
class Estimate:
    """A figure, its 95 % interval, and the number of cases."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    """Number of sampled cases: images, units, seeds or clusters."""
    why: str = ""
    """Why the value or the interval is missing; "" if both are present."""


CONFIDENCE = 0.95
"""Of every interval."""
NORMAL_QUANTILE = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
"""Standard errors on either side of a normally distributed figure that its interval covers."""
FALSE_DISCOVERIES = 0.05
"""Expected share of false ones among what is called beyond chance where many tests are read at once."""
_ROUNDING = 1e-12
"""An adjusted p-value is a product, whose last bit must not decide where it is 0.05."""
NONE = Estimate()
"""Used if nothing was measured."""


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust p-values for the false discovery rate (Benjamini and Hochberg 1995).

    Returns them in the given order, in [0, 1]. Among those up to 0.05, at most 5 % are expected to be false. None
    and values outside [0, 1], which an imported row may have, become None and do not count as tests.
    """
    # Places are kept, since the rest is adjusted without them
    known = {place: p for place, p in enumerate(p_values) if p is not None and 0 <= p <= 1}
    adjusted: list[float | None] = [None] * len(p_values)
    if known:
        # Imported here: see the module
        from scipy.stats import false_discovery_control

        for place, found in zip(known, false_discovery_control([*known.values()]), strict=True):
            adjusted[place] = float(found)
    return adjusted


def is_discovery(adjusted: float | None) -> bool:
    """True if a test holds by a p-value that was adjusted for all the tests beside it."""
    return adjusted is not None and adjusted <= FALSE_DISCOVERIES + _ROUNDING


def is_beyond_chance(value: float | None, adjusted: float | None) -> bool:
    """True if a figure is above 0 by a p-value that was adjusted for all the tests beside it."""
    return value is not None and value > 0 and is_discovery(adjusted)


def find_student(freedom: float, share: float = (1 + CONFIDENCE) / 2) -> float:
    """Return the quantile of Student's t with `freedom` degrees of freedom, above 0."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, share))


def bound_share(share: float, size: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval (1927) of a share among `size` independent cases, which never leaves [0, 1] nor
    shrinks to a point.
    """
    # `scipy.stats.binomtest` has it of whole counts alone; unequal weights and clusters are worth a fraction of a case
    bend = NORMAL_QUANTILE**2 / size
    middle = (share + bend / 2) / (1 + bend)
    reach = NORMAL_QUANTILE * sqrt(share * (1 - share) / size + bend / (4 * size)) / (1 + bend)
    # Exact ends: rounding must not exclude a share of 0 or 1
    return max(0.0, middle - reach) if share > 0 else 0.0, min(1.0, middle + reach) if share < 1 else 1.0
