"""Curves that a numeric function may follow, for fitting: columns whose weighted sum it is, with parameters on a grid.

The texts are expressions of x with NumPy at hand, so that what was fitted can be handed on as code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CurveShape:
    """A family of curves: a sum of `columns`, each with a weight, for every choice of the parameters p and q."""

    words: str
    columns: tuple[str, ...]
    """Expressions of x, p and q."""
    p: tuple[float, ...] = (0.0,)
    q: tuple[float, ...] = (0.0,)

    @property
    def steps(self) -> tuple[float, float]:
        """Half of the distance of neighbours on the grid, for p and for q; 0 where there is one value."""
        return _half_step(self.p), _half_step(self.q)

    def evaluate(self, x: Floats, grid: Sequence[tuple[float, float]]) -> Floats:
        """Return the columns at the points x (points,) for each (p, q): (grid, points, columns). Undefined values are
        NaN."""
        # (grid,) becomes (grid, 1), so that it is broadcast against x
        p, q = np.array(grid, dtype=np.float64).T[:, :, None]
        # Logarithms of 0 and poles are expected: they become NaN below
        with np.errstate(all="ignore"):
            # A column without parameters has one row only
            found = [np.broadcast_to(_compute(each, x[None], p, q), (len(grid), len(x))) for each in self.columns]
        values = np.stack(found, axis=2).astype(np.float64)
        values[~np.isfinite(values)] = np.nan
        return values

    def grid(self) -> list[tuple[float, float]]:
        return list(product(self.p, self.q))


def _compute(expression: str, x: Floats, p: Floats, q: Floats) -> Any:
    # Only the texts of this file are evaluated, never an answer's
    return eval(expression, {"np": np, "x": x, "p": p, "q": q})  # noqa: S307 the texts are those below


def _half_step(values: tuple[float, ...]) -> float:
    return (values[1] - values[0]) / 2 if len(values) > 1 else 0.0


def _range(low: float, high: float, step: float) -> tuple[float, ...]:
    # Rounded, since steps such as 0.1 add up inexactly
    return tuple(round(low + step * place, 4) for place in range(round((high - low) / step) + 1))


def _signed(values: tuple[float, ...]) -> tuple[float, ...]:
    return (*(-value for value in reversed(values)), *values)


# A column of ones lets the curve be shifted up and down
_ONE = "np.ones_like(x)"
_PLACES = _range(-60, 60, 1)
# Coarser where there is a second parameter: the grid is their product
_COARSE_PLACES = _range(-60, 60, 4)
_PERIODS = _range(10, 60, 1)
_FREQUENCIES = _range(0.03, 0.3, 0.001)

SHAPES = (
    CurveShape("a line", ("x", _ONE)),
    CurveShape("a parabola", ("x**2", "x", _ONE)),
    *(CurveShape(f"a power of {n}", (f"x**{n}", _ONE)) for n in (3, 4, 5, 6)),
    CurveShape("two slopes that meet at {p:g}", ("np.maximum(x - p, 0)", "np.minimum(x - p, 0)", _ONE), _PLACES),
    CurveShape("a line kept within ±{p:g}", ("np.clip(x, -p, p)", _ONE), _range(2, 126, 2)),
    CurveShape("a square root", ("np.sqrt(x)", _ONE)),
    CurveShape("a square root of |x|", ("np.sqrt(np.abs(x))", _ONE)),
    CurveShape("a cube root", ("np.cbrt(x)", _ONE)),
    CurveShape("a logarithm", ("np.log(np.where(x > 0, x, np.nan))", _ONE)),
    CurveShape("a logarithm of |x| + 1", ("np.log1p(np.abs(x))", _ONE)),
    CurveShape("exp({p:g} x)", ("np.exp(p * x)", _ONE), _signed(_range(0.005, 0.05, 0.001))),
    CurveShape("a peak at 0 that falls off as exp(-|x| / {p:g})", ("np.exp(-np.abs(x) / p)", _ONE), _range(10, 40, 1)),
    CurveShape("a peak at 0, 1 / (1 + (x / {p:g})²)", ("1 / (1 + (x / p) ** 2)", _ONE), _range(10, 40, 1)),
    CurveShape(
        "a bell around {p:g} of width {q:g}",
        ("np.exp(-(((x - p) / q) ** 2))", _ONE),
        _COARSE_PLACES,
        _range(10, 40, 5),
    ),
    # Sine and cosine together give every phase
    CurveShape("a sine of frequency {p:g}", ("np.sin(p * x)", "np.cos(p * x)", _ONE), _FREQUENCIES),
    CurveShape("a tangent of {p:g} x", ("np.tan(p * x)",), _range(0.005, 0.05, 0.001)),
    CurveShape("an arctangent of {p:g} x", ("np.arctan(p * x)", _ONE), _range(0.05, 0.4, 0.01)),
    CurveShape(
        "a sigmoid around {p:g} of rate {q:g}",
        ("np.tanh(q * (x - p) / 2)", _ONE),
        _COARSE_PLACES,
        (0.02, 0.04, 0.08, 0.12, 0.2, 0.3, 0.4),
    ),
    CurveShape(
        "log(1 + exp({p:g} x))",
        ("np.logaddexp(0, p * x)", _ONE),
        (*_range(-0.4, -0.05, 0.01), *_range(0.05, 0.4, 0.01)),
    ),
    CurveShape("1 / (x - {p:g})", ("1 / (x - p)", _ONE), _PLACES),
    CurveShape("a step at {p:g}", ("(x > p).astype(float)", _ONE), _PLACES),
    CurveShape(
        "a bump within {q:g} of {p:g}",
        ("(np.abs(x - p) < q).astype(float)", _ONE),
        _range(-60, 60, 2),
        _range(10, 40, 2),
    ),
    CurveShape("the remainder of x by {p:g}", ("x % p", _ONE), _PERIODS),
    CurveShape("stairs of width {p:g}", ("np.floor(x / p)", _ONE), _range(10, 40, 1)),
    CurveShape("a triangle wave of period {p:g}", ("np.abs(x - p * np.round(x / p))", _ONE), _PERIODS),
    CurveShape("a square wave of period {p:g}", ("np.where(x % p < p / 2, 1.0, -1.0)", _ONE), _PERIODS),
    CurveShape(
        "a sine of frequency {p:g} that falls off as exp(-|x| / {q:g})",
        ("np.exp(-np.abs(x) / q) * np.sin(p * x)", "np.exp(-np.abs(x) / q) * np.cos(p * x)"),
        _range(0.03, 0.3, 0.002),
        _range(20, 80, 10),
    ),
)
