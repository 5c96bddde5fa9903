"""Curves are found again from their points, alone and in pairs."""

from __future__ import annotations

import random

import numpy as np
import pytest

from workers.functions.fitting import Curve, find_fit
from workers.functions.shapes import SHAPES, CurveShape, Floats

X = np.arange(-128, 128.5, 0.5)
SCORED = np.arange(-127.5, 128)


def draw(shape: CurveShape, seed: int) -> tuple[Curve, Floats]:
    """A curve between the points of the grid where the shape has any, and weights."""
    rng = random.Random(seed)
    p, q = rng.choice(shape.grid())
    return Curve(shape, p, q), np.array([rng.uniform(1, 5) * rng.choice((-1, 1)) for _ in shape.columns])


def evaluate(code: str, x: Floats) -> Floats:
    with np.errstate(all="ignore"):
        return np.asarray(eval(code, {"np": np, "x": x}), dtype=np.float64) + np.zeros_like(x)


def left_over(wanted: Floats, found: Floats) -> float:
    defined = np.isfinite(wanted)
    return float(np.square((wanted - found)[defined]).sum() / np.square(wanted[defined]).sum())


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.words)
def test_a_curve_of_each_shape_is_found_and_its_code_gives_it_elsewhere_too(shape: CurveShape) -> None:
    curve, weights = draw(shape, 3)
    fit = find_fit(X, curve.evaluate(X) @ weights)
    assert fit.error < 1e-9
    assert left_over(curve.evaluate(SCORED) @ weights, evaluate(fit.code, SCORED)) < 1e-4


@pytest.mark.parametrize("joint", ["sum", "product"])
def test_pairs_are_found(joint: str) -> None:
    named = {shape.words: shape for shape in SHAPES}
    first = named["a sine of frequency {p:g}"], 0.05
    second = named["a peak at 0, 1 / (1 + (x / {p:g})²)"], 23.0

    def compute(x: Floats) -> Floats:
        one, other = (Curve(shape, p, 0.0).evaluate(x)[:, 0] for shape, p in (first, second))
        return 20 * one + 70 * other if joint == "sum" else 20 * one * other

    fit = find_fit(X, compute(X))
    assert fit.joint == joint
    assert joint in fit.words
    assert left_over(compute(SCORED), evaluate(fit.code, SCORED)) < 1e-3


def test_undefined_points_are_left_out() -> None:
    y = np.where(X > 0, 3 * np.sqrt(np.maximum(X, 0)) + 1, np.nan)
    assert find_fit(X, y).words == "a square root"


def test_noise_is_not_taken_for_a_second_curve() -> None:
    y = 2 * X + np.random.default_rng(0).normal(size=len(X))
    fit = find_fit(X, y)
    assert left_over(2 * SCORED, evaluate(fit.code, SCORED)) < 1e-3


@pytest.mark.parametrize("y", [np.full(513, np.nan), np.where(np.arange(513) < 7, 1.0, np.inf)])
def test_too_few_points_are_refused(y: Floats) -> None:
    with pytest.raises(ValueError, match="points are defined; at least 8"):
        find_fit(X, y)


def test_a_function_that_is_0_everywhere_is_fitted() -> None:
    fit = find_fit(X, np.zeros_like(X))
    assert np.abs(evaluate(fit.code, SCORED)).max() < 1e-9
