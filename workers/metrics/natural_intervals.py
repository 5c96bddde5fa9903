"""Intervals of r and AUPRC that hold where few images show what a label says, and the test of r = 0; the bootstrap that
`natural`, `floors`, `simulation` and `judge_correction` share.

A bootstrap cannot draw what the sample lacks: without an image that is dark though the label describes it, no resample
has one, and the interval ends short of the truth; where unit and label never meet, every resample has the same r. So it
is made again with one more image, as the exact limits of a count take one more case (Garwood 1936).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from workers.record.estimates import CONFIDENCE, Estimate

Floats = NDArray[np.float64]
Figure = Callable[[Floats, Floats, Floats], Floats]
"""Of activations (n,), presence (n,) and rows of weights (rows, n): a value for each row, NaN where there is none."""

_BLOCK = 4_000_000
"""Numbers held at a time while resampling, so that many images do not fill the memory."""
_LOST = 0.05
"""Share of resamples in which a figure may be undefined before its interval is given up."""
_FLAT = 1e-12
"""Variance of presence below which it counts as constant."""
_AS_IT_IS, _AGAINST, _FOR = (0.0, 0.0, 0.0), (1.0, 1.0, 0.0), (0.0, 0.0, 1.0)
"""Which of the images of `NaturalSample.imagine` a bootstrap has."""


@dataclass(frozen=True)
class NaturalSample:
    """Activations, presence in [0, 1] and weights of images, each (n,); nothing is missing, and n is at least 1."""

    activations: Floats
    presence: Floats
    weights: Floats

    def group(self) -> tuple[NaturalSample, Floats]:
        """Equal images as one, and how many each stands for, (groups,): most units are silent on most images."""
        kinds, counts = np.unique(np.stack(astuple(self)), axis=1, return_counts=True)
        return NaturalSample(*kinds), counts.astype(np.float64)

    def imagine(self) -> NaturalSample:
        """Three images that one more draw might bring: dark though described, bright though not, bright and described.

        Bright is the mean of as many of the brightest images as the label describes, dark that of the others; each
        weighs what those do. n is at least 2.
        """
        count = min(max(round(float(self.presence.sum())), 1), len(self.activations) - 1)
        order = np.argsort(-self.activations, kind="stable")
        bright, dark = (
            (float(self.activations[some].mean()), float(self.weights[some].mean()))
            for some in (order[:count], order[count:])
        )
        activations, weights = np.array([dark, bright, bright]).T
        return NaturalSample(activations, np.array([1.0, 0.0, 1.0]), weights)


def estimate_interval(figure: Figure, sample: NaturalSample, *, seed: int, resamples: int) -> Estimate:
    """A figure of a sample, and what three Bayesian bootstraps (Rubin 1981) span together.

    One is of the images as they are, and moved by twice its bias; one has images that speak against the label besides,
    and gives a lower end; one has an image that speaks for it, and gives an upper end.
    """
    value = float(figure(sample.activations, sample.presence, sample.weights[None])[0])
    groups, counts = sample.group()
    wider = NaturalSample(*map(np.append, astuple(groups), astuple(sample.imagine())))
    drawn: list[list[Floats]] = [[], [], []]
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
    """The chance of an r so far from 0, either way, if presence had nothing to do with activation: a permutation test
    (Fisher 1935), which holds for any number of positives. Neither side is constant.

    Of a weighted sample it holds where the draws depend on activations alone. Where they depend on a guess at presence
    too, described images weigh little, and permuting gives their presence to heavier ones: the permuted r varies more
    than the true one, so that p is too large rather than too small.
    """
    shares = sample.weights / sample.weights.sum()
    pull = shares * (sample.activations - shares @ sample.activations)
    found = np.flatnonzero(sample.presence)  # the others add nothing, wherever they lie
    values, rng = sample.presence[found], np.random.default_rng(seed)

    def distance(places: NDArray[np.int64]) -> float:
        """How far r is from 0 with the presence of those images in these places, but for a constant factor."""
        mean = float(shares[places] @ values)
        spread = float(shares[places] @ values**2) - mean * mean
        return float(abs(pull[places] @ values) / np.sqrt(spread)) if spread > _FLAT else 0.0

    least = distance(found) * (1 - 1e-9)  # the same sum in another order differs in its last bit
    draws = (rng.choice(len(shares), len(found), replace=False) for _ in range(permutations))
    return (1 + sum(distance(places) >= least for places in draws)) / (1 + permutations)


def keep_defined(drawn: Floats) -> Floats | None:
    """The draws in which a figure is defined; None if too many are not."""
    known = drawn[np.isfinite(drawn)]
    return known if len(known) >= (1 - _LOST) * len(drawn) else None


def bound_draws(value: float, drawn: Floats, bias: float = 0.0) -> tuple[float, float]:
    """The ends between which 95 % of the draws lie, by themselves and less twice their bias; never beside the value."""
    low, high = (float(end) for end in np.quantile(drawn, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)))
    return min(value, low, low - 2 * bias), max(value, high, high - 2 * bias)


def draw_weights(counts: Floats, resamples: int, seed: int) -> Iterator[Floats]:
    """Weights of a Bayesian bootstrap, not normalised: blocks of (some resamples, groups). An image has an exponential
    variate, and a group of equal ones the sum of theirs, which is a gamma variate."""
    rng = np.random.default_rng(seed)
    rows = max(1, min(resamples, _BLOCK // max(len(counts), 1)))
    for start in range(0, resamples, rows):
        yield rng.standard_gamma(counts, (min(rows, resamples - start), len(counts)))
