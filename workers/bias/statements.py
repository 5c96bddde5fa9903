"""From a concluded bias run to tested statements: two sets of images each, effect size, interval, corrected p.

What a statement is, and which images bear on it: `record/stated_biases.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from workers.metrics.significance import holm
from workers.record.experiments import Observation
from workers.record.stated_biases import StatedBias, find_sides, read_statements

_RESAMPLES = 9_999


@dataclass(frozen=True)
class BiasStatement:
    """A stated bias and what the run's images say of it. Activations are as the system gave them."""

    stated: StatedBias
    inside: tuple[Observation, ...]
    """Images with the context."""
    outside: tuple[Observation, ...]
    inside_mean: float | None
    """None where there is no image."""
    outside_mean: float | None
    effect: float | None
    """Standardised difference, inside less outside (Hedges' g); None with fewer than two images on a side."""
    low: float | None
    high: float | None
    """Its 95 % interval (Hedges and Olkin 1985)."""
    p: float | None
    """Of a permutation test of the difference of means, two-sided."""
    adjusted_p: float | None
    """Corrected for the number of statements of the run (Holm 1979)."""
    holds: bool
    """Whether the difference goes the stated way and the corrected p is below 0.05."""
    why: str = ""
    """Why it could not be tested."""


def check_statements(text: str, experiments: Sequence[Sequence[Observation]]) -> list[BiasStatement]:
    """The statements in a conclusion, the greatest effect first, each tested on what the run logged.

    `experiments` are the observations of each experiment, in order.
    """
    measured = [_measure(stated, experiments) for stated in read_statements(text)]
    adjusted = holm([math.nan if each.p is None else each.p for each in measured])
    tested = [_adjust(each, value) for each, value in zip(measured, adjusted, strict=True)]
    return sorted(tested, key=lambda each: -abs(each.effect or 0.0))


def _adjust(measured: BiasStatement, adjusted: float) -> BiasStatement:
    if math.isnan(adjusted) or measured.effect is None:
        return measured
    same_way = (measured.effect < 0) == (measured.stated.direction == "weaker")
    return replace(measured, adjusted_p=float(adjusted), holds=same_way and adjusted < 0.05)


def _measure(stated: StatedBias, experiments: Sequence[Sequence[Observation]]) -> BiasStatement:
    inside, outside = find_sides(stated, experiments)
    parts = [np.array([each.activation for each in side], dtype=np.float64) for side in (inside, outside)]
    one, two = (float(part.mean()) if len(part) else None for part in parts)
    sides = tuple(inside), tuple(outside)
    if min(map(len, parts)) < 2:
        where = f'with "{stated.context}" in their titles' if len(parts[0]) < 2 else f'without "{stated.context}"'
        why = f"The run drew fewer than two images {where}."
        return BiasStatement(stated, *sides, one, two, None, None, None, None, None, False, why)
    effect, error = _standardise(*parts)
    low, high = effect - 1.959964 * error, effect + 1.959964 * error
    return BiasStatement(stated, *sides, one, two, effect, low, high, _permute(*parts), None, False)


def _standardise(inside: NDArray[np.float64], outside: NDArray[np.float64]) -> tuple[float, float]:
    """Hedges' g and its standard error (Hedges and Olkin 1985); 0 where nothing varies at all."""
    first, second = len(inside), len(outside)
    freedom = first + second - 2
    pooled = math.sqrt(((first - 1) * inside.var(ddof=1) + (second - 1) * outside.var(ddof=1)) / freedom)
    difference = float(inside.mean() - outside.mean())
    scale = pooled or abs(difference) or 1.0
    effect = difference / scale * (1 - 3 / (4 * freedom - 1)) if freedom > 1 else difference / scale
    return effect, math.sqrt((first + second) / (first * second) + effect**2 / (2 * (first + second)))


def _permute(inside: NDArray[np.float64], outside: NDArray[np.float64]) -> float:
    """Two-sided p; the same for the same images."""
    found = stats.permutation_test(
        (inside, outside),
        lambda one, two, axis: one.mean(axis) - two.mean(axis),
        vectorized=True,
        n_resamples=_RESAMPLES,
        rng=np.random.default_rng(0),
    )
    return float(found.pvalue)
