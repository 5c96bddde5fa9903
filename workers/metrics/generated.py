"""How well a label predicts which images made for it activate a unit: figures that papers report, for comparison.

None of them falls both for labels that are too narrow and for those that are too broad; those in `natural` do.
Activations are NaN for images that could not be made or measured; these are left out and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workers.metrics.intervals import estimate_area, estimate_share
from workers.metrics.ranking import area_under_curve
from workers.record.estimates import Estimate

THRESHOLD = 0.5
SWEEP = tuple(round(step / 20, 2) for step in range(1, 21))
"""Thresholds for predictiveness, as shares of the exemplar mean."""


@dataclass(frozen=True)
class GeneratedScores:
    """Figures from images made from a label alone."""

    positive_mean: float | None
    neutral_mean: float | None
    """MAIA's two means (Rott Shaham et al. 2024, section 4): activations of images from prompts that should activate
    the unit, and from those that should not."""
    auc: Estimate
    """Probability that a positive image exceeds a neutral one. n counts prompts."""
    cosy_auc: float | None
    """CoSy's AUC (Kopf et al. 2024): the positive images against the controls."""
    cosy_mad: float | None
    """CoSy's MAD: (mean of positives - mean of controls) / standard deviation of controls; 0 if that is 0."""
    positives: int
    neutrals: int
    controls: int
    """Number of measured images of each kind."""
    unusable: int
    """Positive and neutral images that could not be made or measured."""


@dataclass(frozen=True)
class Predictiveness:
    """SAIA's score (2510.21704): the share of images on the side of a threshold that the label predicts."""

    share: Estimate
    threshold: float
    """As a share of the exemplar mean."""
    sweep: tuple[tuple[float, float], ...]
    """Threshold and share for every threshold tried; empty without a score."""
    unusable: int


def score_generated(positive: ArrayLike, neutral: ArrayLike, controls: ArrayLike = ()) -> GeneratedScores:
    """Score activations of positive and neutral images, each (prompts,) or (prompts, seeds), and of controls (n,).

    The controls are natural images: the probe set.
    """
    made, plain = _rows(positive), _rows(neutral)
    # Each side by itself: an image that failed must not take its partner with it.
    high, low, base = (each[np.isfinite(each)] for each in (made, plain, np.asarray(controls, np.float64).reshape(-1)))
    prompts = [int(np.isfinite(each).any(1).sum()) for each in (made, plain)]
    area = area_under_curve(high, base)
    spread = float(base.std()) if len(base) else 0.0
    return GeneratedScores(
        positive_mean=_mean(high),
        neutral_mean=_mean(low),
        # By prompts: further images of a prompt are no new evidence.
        auc=estimate_area(area_under_curve(high, low), *prompts),
        cosy_auc=None if np.isnan(area) else area,
        # CoSy's definition, in which a constant control gives 0.
        cosy_mad=None if not len(high) or not len(base) else _divide(float(high.mean() - base.mean()), spread),
        positives=len(high),
        neutrals=len(low),
        controls=len(base),
        unusable=made.size + plain.size - len(high) - len(low),
    )


def score_predictiveness(
    positive: ArrayLike,
    negative: ArrayLike,
    exemplar_mean: float | None,
    *,
    threshold: float = THRESHOLD,
    sweep: Sequence[float] = SWEEP,
) -> Predictiveness:
    """Return the share of images that respond as the label predicts: positive ones at or above threshold times exemplar
    mean.

    The paper uses 10 + 10 images; any shape is accepted. `share` has Wilson's interval. It is None without a
    positive exemplar mean, because the threshold is a share of that.
    """
    every = [np.asarray(each, np.float64).reshape(-1) for each in (positive, negative)]
    high, low = (each[np.isfinite(each)] for each in every)
    unusable = sum(map(len, every)) - len(high) - len(low)
    n = len(high) + len(low)
    if exemplar_mean is None or not np.isfinite(exemplar_mean) or exemplar_mean <= 0:
        why = "the exemplars have no mean activation above 0 to take a share of"
        return Predictiveness(Estimate(None, n=n, why=why), threshold, (), unusable)
    # The threshold first, then the sweep.
    hits = [int((high >= t * exemplar_mean).sum() + (low < t * exemplar_mean).sum()) for t in (threshold, *sweep)]
    curve = tuple((t, hit / n) for t, hit in zip(sweep, hits[1:], strict=True)) if n else ()
    return Predictiveness(estimate_share(hits[0], n), threshold, curve, unusable)


def _rows(values: ArrayLike) -> NDArray[np.float64]:
    """Reshape to (prompts, seeds)."""
    found = np.asarray(values, np.float64)
    return found.reshape(len(found), -1) if found.size else found.reshape(0, 1)


def _mean(values: NDArray[np.float64]) -> float | None:
    return float(values.mean()) if len(values) else None


def _divide(difference: float, spread: float) -> float:
    return difference / spread if spread > 0 else 0.0
