"""Approximate a numeric function by a small network, 1 → 64 ReLU → 1.

The hidden weights are random and the output weights solve a ridge regression: closed form, in about a millisecond.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from workers.functions.atoms import compute

_HIDDEN = 64
_POINTS = 512
_RIDGE = 1e-6

_CODE = """\
_SIGNS = {signs}
_KNOTS = {knots}
_WEIGHTS = {weights}


def f(x):
    u = x / {scale}
    return {bias} + sum(w * max(0.0, s * (u - k)) for s, k, w in zip(_SIGNS, _KNOTS, _WEIGHTS))
"""


def approximate(function: Callable[[float], float], edge: float, rng: random.Random) -> str:
    """Return the code of a network fitted to f on 512 points of -edge … edge; points where f is undefined are left out.

    Weights have 6 significant digits, so that the code is the network.
    """
    points = np.linspace(-edge, edge, _POINTS)
    values = np.array([compute(function, float(x)) for x in points])
    kept = np.isfinite(values)
    # Rounded before the fit, so that the printed code has exactly these
    knots = np.array([round(2 * rng.random() - 1, 4) for _ in range(_HIDDEN)])
    signs = np.array([1 if rng.random() < 0.5 else -1 for _ in range(_HIDDEN)])
    features = np.maximum(0.0, signs * (points[kept, None] / edge - knots))
    # The first column is the bias
    weights = _solve_ridge(np.column_stack([np.ones(len(features)), features]), values[kept])
    return _CODE.format(signs=signs.tolist(), knots=knots.tolist(), weights=weights[1:], scale=edge, bias=weights[0])


def _solve_ridge(features: NDArray[np.float64], values: NDArray[np.float64]) -> list[float]:
    # Scaled to 1, so that the penalty means the same for small and large functions
    size = float(np.abs(values).max()) or 1.0
    penalty = _RIDGE * len(features) * np.eye(features.shape[1])
    weights = np.linalg.solve(features.T @ features + penalty, features.T @ (values / size))
    return [float(f"{weight * size:.6g}") for weight in weights]
