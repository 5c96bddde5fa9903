"""Intervals of r and AUPRC that hold where few images show what a label says, and the test of r = 0; the bootstrap that
`natural`, `floors`, `simulation` and `judge_correction` share.

A bootstrap cannot draw what the sample lacks. Without a dark image that the label describes, no resample has one,
and the interval ends short of the truth; if unit and label never coincide, every resample has the same r. So the
bootstrap is repeated with one more image, as exact limits of a count add one more case (Garwood 1936).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from workers.record.estimates import CONFIDENCE, Estimate

Floats = NDArray[np.float64]
Statistic = Callable[[Floats, Floats, Floats], Floats]
"""Maps activations (n,), presence (n,) and weights (rows, n) to a value for each row, NaN if undefined."""

_BLOCK = 4_000_000
"""Numbers in memory at a time while resampling."""
_LOST = 0.05
"""If a figure is undefined in more than this share of resamples, it gets no interval."""
_FLAT = 1e-12
"""Presence with a smaller variance counts as constant."""
_AS_IT_IS, _AGAINST, _FOR = (0.0, 0.0, 0.0), (1.0, 1.0, 0.0), (0.0, 0.0, 1.0)
"""Which of the images of `NaturalSample.imagine` a bootstrap includes."""


@dataclass(frozen=True)
class NaturalSample:
    """Activations, presence in [0, 1] and weights of n >= 1 images, each (n,), without missing values."""

    activations: Floats
    presence: Floats
    weights: Floats

    def group(self) -> tuple[NaturalSample, Floats]:
        """Merge equal images. Returns them and their counts, (groups,)."""
        # Most units are silent on most images, so this saves nearly all of the work.
        kinds, counts = np.unique(np.stack(astuple(self)), axis=1, return_counts=True)
        return NaturalSample(*kinds), counts.astype(np.float64)

    def imagine(self) -> NaturalSample:
        """Return three images that one more draw could add: dark but described, bright but not described, bright and
        described.

        Bright is the mean of the brightest images, as many as the label describes; dark is the mean of the others.
        Each has the mean weight of those. n is at least 2.
        """
        # At least one image on each side.
        count = min(max(round(float(self.presence.sum())), 1), len(self.activations) - 1)
        order = np.argsort(-self.activations, kind="stable")
        bright, dark = (
            (float(self.activations[some].mean()), float(self.weights[some].mean()))
            for some in (order[:count], order[count:])
        )
        activations, weights = np.array([dark, bright, bright]).T
        return NaturalSample(activations, np.array([1.0, 0.0, 1.0]), weights)


def estimate_interval(figure: Statistic, sample: NaturalSample, *, seed: int, resamples: int) -> Estimate:
    """Estimate a figure with the union of three Bayesian bootstrap intervals (Rubin 1981).

    The first uses the images as they are, and is also shifted by twice its bias. The second adds images that
    contradict the label and gives a lower end. The third adds an image that supports it and gives an upper end.
    """
    # 1. Add the three imagined images; each bootstrap gives those that it excludes weight 0
    value = float(figure(sample.activations, sample.presence, sample.weights[None])[0])
    groups, counts = sample.group()
    wider = NaturalSample(*map(np.append, astuple(groups), astuple(sample.imagine())))
    drawn: list[list[Floats]] = [[], [], []]
    # The imagined images have the weight of one image each.
    for rows in draw_weights(np.append(counts, np.ones(3)), resamples, seed):
        for found, kept in zip(drawn, (_AS_IT_IS, _AGAINST, _FOR), strict=True):
            weights = rows * wider.weights * np.append(np.ones(len(counts)), kept)
            found.append(figure(wider.activations, wider.presence, weights))
    plain, lower, upper = (keep_defined(np.concatenate(each)) for each in drawn)
    n = len(sample.activations)
    if plain is None or lower is None or upper is None:
        return Estimate(value, n=n, why="too few values for an interval: it is undefined in many resamples")
    low, high = bound_draws(value, plain, bias=float(plain.mean()) - value)
    return Estimate(value, min(low, bound_draws(value, lower)[0]), max(high, bound_draws(value, upper)[1]), n)


def find_p_value(sample: NaturalSample, *, seed: int, permutations: int) -> float:
    """Return the two-sided p-value of r by a permutation test (Fisher 1935), valid for any number of positives.

    Neither side may be constant. For a weighted sample the test is valid if draws depend on activations alone. If
    they also depend on a guess at presence, described images have low weights and permuting moves their presence to
    heavier images. The permuted r then varies more than the true one, so p is too large and never too small.
    """
    shares = sample.weights / sample.weights.sum()
    pull = shares * (sample.activations - shares @ sample.activations)
    found = np.flatnonzero(sample.presence)  # the others add nothing, wherever they lie
    values, rng = sample.presence[found], np.random.default_rng(seed)

    def distance(places: NDArray[np.int64]) -> float:
        """Return how far r is from 0 with those images' presence at these positions, up to a constant factor."""
        mean = float(shares[places] @ values)
        spread = float(shares[places] @ values**2) - mean * mean
        return float(abs(pull[places] @ values) / np.sqrt(spread)) if spread > _FLAT else 0.0

    # The same sum in another order differs in its last bit
    least = distance(found) * (1 - 1e-9)
    draws = (rng.choice(len(shares), len(found), replace=False) for _ in range(permutations))
    # One is added to both: the data itself is one of the permutations, so p is never 0.
    return (1 + sum(distance(places) >= least for places in draws)) / (1 + permutations)


def keep_defined(drawn: Floats) -> Floats | None:
    """Return the draws in which a figure is defined; None if too many are not."""
    known = drawn[np.isfinite(drawn)]
    return known if len(known) >= (1 - _LOST) * len(drawn) else None


def bound_draws(value: float, drawn: Floats, bias: float = 0.0) -> tuple[float, float]:
    """Return the ends between which 95 % of the draws lie, by themselves and less twice their bias."""
    low, high = (float(end) for end in np.quantile(drawn, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)))
    # The value itself is always inside.
    return min(value, low, low - 2 * bias), max(value, high, high - 2 * bias)


def draw_weights(counts: Floats, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield blocks of unnormalized weights of a Bayesian bootstrap, (some resamples, groups)."""
    rng = np.random.default_rng(seed)
    rows = max(1, min(resamples, _BLOCK // max(len(counts), 1)))
    for start in range(0, resamples, rows):
        # Each image has an exponential variate; a group of equal images has the sum of theirs, a gamma variate.
        yield rng.standard_gamma(counts, (min(rows, resamples - start), len(counts)))
