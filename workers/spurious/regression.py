"""Logistic regressions on standardised features (MAIA, appendix F): saga with an l1 penalty, lbfgs without any.

A unit counts as used where the weight of any class is not zero. scikit-learn is loaded on first use.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]

STRENGTHS = np.logspace(-3.5, 1, 28)
"""C, the inverse of the penalty, at which the path of units is followed."""
TUNED = np.logspace(-2.5, 1, 8)
"""Values of C among which one is chosen on held-out halves."""
_HALVES = 5
_STEPS = 18
_LOWEST, _HIGHEST = -4.0, 3.0
"""log10 of C, between which a number of units is looked for."""


@dataclass(frozen=True)
class FittedRegression:
    """Logistic regression over some units; it standardises by what it was fitted on."""

    units: Integers
    """(used,), the numbers of the units that it takes."""
    mean: Floats
    scale: Floats
    """(used,)."""
    weights: Floats
    """(classes, used)."""
    bias: Floats
    """(classes,)."""
    strength: float
    """C; infinite without a penalty."""

    def predict(self, features: Floats) -> Integers:
        """Return the class of each image, from features (images, all units)."""
        shown = (features[:, self.units] - self.mean) / self.scale
        return np.asarray((shown @ self.weights.T + self.bias).argmax(1), dtype=np.int64)

    @property
    def used(self) -> Integers:
        """The units with a weight for any class, the greatest weight first."""
        # `initial` for a fit without units
        size = np.abs(self.weights).max(0, initial=0)
        return self.units[np.argsort(-size, kind="stable")][: int((size > 0).sum())]


def fit(
    features: Floats, classes: Integers, units: Sequence[int] | Integers | None = None, strength: float = np.inf
) -> FittedRegression:
    """Fit over these units (all, if None). `strength` is C of the l1 penalty; infinite for none.

    `classes` are numbers from 0 on; of one that is absent nothing is learnt. Without a unit the most frequent wins.
    """
    from sklearn.linear_model import LogisticRegression

    # None means all, an empty list none
    chosen = np.arange(features.shape[1]) if units is None else np.asarray(units, dtype=np.int64)
    part = np.asarray(features[:, chosen], dtype=np.float64)
    mean, scale = part.mean(0), part.std(0)
    # A constant unit has no deviation to be divided by
    scale[scale == 0] = 1.0
    known, count = np.unique(classes), int(classes.max()) + 1
    # A class that is absent is never predicted
    weights, bias = np.zeros((count, len(chosen))), np.full(count, -np.inf)
    # 1. Nothing to learn: by frequency alone
    if not len(chosen) or len(known) < 2:
        bias[known] = [float(np.log((classes == each).mean())) for each in known]
        return FittedRegression(chosen, mean, scale, weights, bias, strength)
    # 2. With a penalty, or without
    if np.isfinite(strength):
        # saga is the solver that takes an l1 penalty with several classes
        model = LogisticRegression(C=strength, l1_ratio=1.0, solver="saga", tol=1e-3, max_iter=500, random_state=0)
    else:
        model = LogisticRegression(C=np.inf, solver="lbfgs", max_iter=1_000)
    # 3. On standardised features, so that the penalty treats units alike
    with _quiet():
        model.fit((part - mean) / scale, classes)
    found, offset = model.coef_, model.intercept_
    if len(known) == 2:  # one row says it for both
        found, offset = np.concatenate([-found, found]) / 2, np.concatenate([-offset, offset]) / 2
    # 4. Rows of absent classes stay at minus infinity
    weights[known], bias[known] = found, offset
    return FittedRegression(chosen, mean, scale, weights, bias, strength)


def l1_units(features: Floats, classes: Integers, count: int) -> FittedRegression:
    """Return the l1 fit in which `count` units have any non-zero class weight, or as near to it as C allows.

    C is found by halving on a logarithmic scale, with more units the larger it is. Raises ValueError for a count that
    the features do not have.
    """
    if not 0 <= count <= features.shape[1]:
        raise ValueError(f"{count} units were asked for, of {features.shape[1]}. Ask for as many as there are.")
    if count == 0:
        return fit(features, classes, [])
    low, high = _LOWEST, _HIGHEST
    best: FittedRegression | None = None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        found = fit(features, classes, strength=10**middle)
        used = len(found.used)
        # The number of units may jump over the wanted one, so the nearest is kept
        if best is None or abs(used - count) < abs(len(best.used) - count):
            best = found
        if used == count:
            break
        low, high = (middle, high) if used < count else (low, middle)
    assert best is not None
    return best


def tune_strength(features: Floats, classes: Integers, seed: int) -> float:
    """Return C of the l1 penalty that predicts best over five random halves; of equals the strongest penalty."""
    rng = np.random.default_rng(seed)
    right = np.zeros(len(TUNED))
    for _ in range(_HALVES):
        # Halves at random, the same for all strengths
        order = rng.permutation(len(classes))
        half = len(order) // 2
        learn, test = order[:half], order[half:]
        for place, strength in enumerate(TUNED):
            found = fit(features[learn], classes[learn], strength=float(strength))
            right[place] += float((found.predict(features[test]) == classes[test]).mean())
    # `argmax` takes the first of equals, which is the strongest penalty
    return float(TUNED[int(right.argmax())])


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence warnings: perfectly separable classes have no best weights, so a fit may stop before it converges."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
