"""Find the shape, or the sum or product of two, that fits measured points best, by least squares."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from workers.functions.shapes import SHAPES, CurveShape, Floats

_EVERY = 4
"""Pairs are tried on every n-th point; the best of them are fitted on all points."""
_LIKELY = 6
"""Pairs of each kind that are fitted at all points."""
_ROUNDS = 12
_FLOOR = 1e-14
"""Share of the squared values that rounding leaves if a curve is exact."""
_EXACT = 1e-9


@dataclass(frozen=True)
class Curve:
    """A shape at given parameters."""

    shape: CurveShape
    p: float
    q: float

    @property
    def words(self) -> str:
        return self.shape.words.format(p=self.p, q=self.q)

    @property
    def columns(self) -> list[str]:
        """Expressions of x."""
        values = {"p": repr(self.p), "q": repr(self.q)}
        # As `repr`, which gives back exactly the same float
        return [re.sub(r"\b[pq]\b", lambda found: values[found[0]], each) for each in self.shape.columns]

    def evaluate(self, x: Floats) -> Floats:
        """Return the columns (points, columns)."""
        return self.shape.evaluate(x, [(self.p, self.q)])[0]

    def list_neighbours(self, share: float) -> Iterator[Curve]:
        """Yield the curves a share of the grid's half step away, in each parameter and direction."""
        for sign in (-1, 1):
            for name, step in zip("pq", self.shape.steps, strict=True):
                if step:
                    # Rounded, so that repeated halving does not pile up digits
                    yield replace(self, **{name: round(getattr(self, name) + sign * share * step, 6)})


@dataclass(frozen=True)
class Fit:
    """A weighted sum of the columns of one curve, or of two added or multiplied."""

    parts: tuple[Curve, ...]
    joint: str = ""
    """"sum" or "product" of two parts."""
    weights: tuple[float, ...] = ()
    error: float = math.inf
    """Sum of squared residuals over sum of squares."""
    score: float = math.inf
    """Bayesian information criterion: n log(error) + parameters · log(n). Lower is better."""

    @property
    def words(self) -> str:
        if not self.joint:
            return self.parts[0].words
        return f"the {self.joint} of {self.parts[0].words} and {self.parts[1].words}"

    @property
    def code(self) -> str:
        """An expression of x."""
        columns = self.parts[0].columns
        if self.joint == "sum":
            columns = columns + self.parts[1].columns
        if self.joint == "product":
            columns = [f"({one}) * ({other})" for one in columns for other in self.parts[1].columns]
        return " + ".join(f"{weight!r} * ({each})" for weight, each in zip(self.weights, columns, strict=True))


class MeasuredPoints:
    """Points of a function, some of which may be undefined."""

    def __init__(self, x: Floats, y: Floats) -> None:
        kept = np.isfinite(y)
        self.x, self.y = x[kept], y[kept]
        # A function that is 0 everywhere would divide by 0
        self.size = float(np.square(self.y).sum()) or 1.0

    @cached_property
    def thinned(self) -> MeasuredPoints:
        return MeasuredPoints(self.x[::_EVERY], self.y[::_EVERY])

    def fit(self, parts: tuple[Curve, ...], joint: str = "") -> Fit:
        """Return the fit of given curves with the least error."""
        found = [part.evaluate(self.x) for part in parts]
        design = found[0] if not joint else np.concatenate(found, axis=1) if joint == "sum" else _multiply(*found)
        # `_solve` takes many designs at once: this is one
        weights, left = _solve(design[None], self.y)
        error = float(left[0]) / self.size
        # Free are the weights and those parameters that have a grid
        free = design.shape[1] + sum(bool(step) for part in parts for step in part.shape.steps)
        # An exact curve leaves only rounding, whose logarithm would decide by chance
        score = len(self.y) * math.log(max(error, _FLOOR)) + free * math.log(max(len(self.y), 2))
        return Fit(parts, joint, tuple(weights[0].tolist()), error, score if math.isfinite(error) else math.inf)

    def refine(self, fit: Fit) -> Fit:
        """Move the parameters by smaller and smaller steps as long as that lowers the error."""
        share = 1.0
        for _ in range(_ROUNDS):
            # 1. All neighbours at the present step
            moved = [
                self.fit((*fit.parts[:place], near, *fit.parts[place + 1 :]), fit.joint)
                for place, part in enumerate(fit.parts)
                for near in part.list_neighbours(share)
            ]
            best = min(moved, key=lambda each: each.error, default=fit)
            # 2. Move while that helps, else halve the step
            if best.error < fit.error:
                fit = best
            else:
                share /= 2
            # 3. Exact: more steps would fit rounding
            if fit.error < _FLOOR:
                break
        return fit


def find_fit(x: Floats, y: Floats) -> Fit:
    """Return the best fit to points of y at x, both (points,); single curves first, pairs where none of them is exact.

    Raises ValueError where fewer than 8 points are defined.
    """
    measured = MeasuredPoints(x, y)
    if len(measured.y) < 8:
        raise ValueError(f"{len(measured.y)} points are defined; at least 8 are needed.")
    # The best of each shape on its grid, then refined between the grid's points
    bests = [_find_best(measured, shape) for shape in SHAPES]
    singles = sorted((measured.refine(each) for each in bests), key=lambda each: each.score)
    # 1. A single exact curve: a pair would fit as well and say more than is true
    if singles[0].error < _EXACT:
        return singles[0]
    # 2. For each curve its best partner, on every n-th point, since there are very many pairs
    partners = tuple(each.parts[0] for each in singles)
    pairs = [
        measured.fit(parts, joint) for joint in ("sum", "product") for parts in _find_pairs(measured, partners, joint)
    ]
    # 3. Only the likeliest pairs are refined, on all points
    likely = sorted(pairs, key=lambda each: each.score)[:_LIKELY]
    return min([singles[0], *map(measured.refine, likely)], key=lambda each: each.score)


def _find_best(measured: MeasuredPoints, shape: CurveShape) -> Fit:
    """Return a shape at those parameters of its grid with the least error."""
    grid = shape.grid()
    _, left = _solve(shape.evaluate(measured.x, grid), measured.y)
    return measured.fit((Curve(shape, *grid[int(left.argmin())]),))


def _find_pairs(measured: MeasuredPoints, partners: Iterable[Curve], joint: str) -> list[tuple[Curve, Curve]]:
    """Return each partner with the curve that fits best beside it."""
    few = measured.thinned
    found = []
    for partner in partners:
        own = partner.evaluate(few.x)
        best, least = None, math.inf
        for shape in SHAPES:
            other, grid = shape.evaluate(few.x, _thin_grid(shape)), _thin_grid(shape)
            # The partner's columns are the same for each point of the grid
            beside = np.broadcast_to(own, (len(grid), *own.shape))
            design = np.concatenate([beside, other], axis=2) if joint == "sum" else _multiply(beside, other)
            _, left = _solve(design, few.y)
            place = int(left.argmin())
            # `left` is infinite where a shape is undefined at a point
            if left[place] < least:
                best, least = Curve(shape, *grid[place]), float(left[place])
        if best:
            found.append((partner, best))
    return found


@cache
def _thin_grid(shape: CurveShape) -> list[tuple[float, float]]:
    """Return a part of a shape's grid, small enough to try; a refinement finds the values between."""
    grid = shape.grid()
    # About 120 points of each grid, evenly chosen
    return grid[:: 1 + len(grid) // 120]


def _multiply(one: Floats, other: Floats) -> Floats:
    """Return all products of columns of one with columns of the other: (…, points, columns)."""
    return (one[..., :, None] * other[..., None, :]).reshape(*one.shape[:-1], -1)


def _solve(design: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return weights (fits, columns) and squared residuals (fits,); infinity where a column is undefined at a point.

    `design` is (fits, points, columns).
    """
    defined = np.atleast_1d(np.isfinite(design).all(axis=(1, 2)))
    clean = np.where(defined[:, None, None], design, 0.0)
    # All columns get length 1, or large ones would hide small ones in the equations
    scale = np.sqrt(np.square(clean).sum(axis=1))
    scale[scale == 0] = 1.0
    clean = clean / scale[:, None, :]
    # The small diagonal keeps columns that depend on one another solvable
    gram = clean.transpose(0, 2, 1) @ clean + 1e-11 * np.eye(design.shape[2])
    weights = np.linalg.solve(gram, (clean.transpose(0, 2, 1) @ y)[..., None])
    left = np.square(y - (clean @ weights)[..., 0]).sum(axis=1)
    # The weights for the columns as they were, before they got length 1
    return weights[..., 0] / scale, np.where(defined, left, math.inf)
