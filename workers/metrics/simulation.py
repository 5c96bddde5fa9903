"""Simulation score: compares the activation that a label predicts with the measured one.

From "Language models can explain neurons in language models" (Bills et al., OpenAI 2023): a simulator predicts the
activation from the explanation, and the score is how well the prediction agrees. Here the prediction is the judge's
presence in [0, 1], scaled to the activations by least squares on one half of the images and scored on the other.

The scaling is linear, so the correlation is r of that half. Explained variance is the new figure: it also falls if the
size of the response does not carry over. For a good fit it is about r squared.

Sanity tests (NeuronEval, 2506.05774; `tests/support/sanity.py`): explained variance falls in .99 to 1.00 of
simulated units for half of a label and for twice as much, at base rates of 0.1, 0.05 and 0.01; in 1.00 and .98 at
0.004, and in .83 and .82 at 0.001, where 20,000 images show the concept 20 times. Except for the last, it passes
where r does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workers.metrics.natural import PRESENT, correlate
from workers.metrics.natural_intervals import NaturalSample, Statistic, estimate_interval
from workers.record.estimates import Estimate
from workers.record.label_checks import MIN_POSITIVES
from workers.record.other_tests import SimulationResult

Floats = NDArray[np.float64]

MIN_IMAGES = 20
"""Minimum number of images for two halves."""
RESAMPLES = 500


def score_simulation(
    activations: ArrayLike,
    presence: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> SimulationResult:
    """Fit on a random half, score on the other. Vectors as for `score_natural`; unreadable answers are left out.

    Raises ValueError for unequal lengths.
    """
    acts, said = (np.asarray(each, np.float64).reshape(-1) for each in (activations, presence))
    heavy = np.ones_like(acts) if weights is None else np.asarray(weights, np.float64).reshape(-1)
    if not len(acts) == len(said) == len(heavy):
        raise ValueError(
            f"{len(acts)} activations, {len(said)} answers, {len(heavy)} weights: give all for each image."
        )
    kept = np.flatnonzero(np.isfinite(acts) & np.isfinite(said) & (heavy > 0))
    # Only yes and no can be predicted by a yes/no judge; people see which it was.
    graded = bool(((said[kept] > 0) & (said[kept] < 1)).any())
    if len(kept) < MIN_IMAGES:
        few = Estimate(None, n=len(kept), why=f"{len(kept)} images have an answer, and it takes {MIN_IMAGES}")
        return SimulationResult(few, few, graded=graded)
    order = np.random.default_rng(seed).permutation(kept)
    # Fitted on one half and scored on the other, or the fit itself would raise the score.
    # Sorted, so that resampling does not depend on the order of the draw.
    first, second = order[: len(order) // 2], np.sort(order[len(order) // 2 :])
    base, slope = _fit(acts[first], said[first], heavy[first])
    sample = NaturalSample(acts[second], said[second], heavy[second])

    def predict_activations(activations: Floats, presence: Floats, rows: Floats) -> Floats:
        return explain_variance(activations, base + slope * presence, rows)

    return SimulationResult(
        _estimate(correlate, sample, seed, resamples),
        _estimate(predict_activations, sample, seed, resamples),
        fitted=len(first),
        graded=graded,
    )


def explain_variance(activations: Floats, predicted: Floats, weights: Floats) -> Floats:
    """Return 1 - squared error / variance for each row of weights (rows, n); NaN if all activations are equal."""
    total = weights.sum(1)
    centred = activations - activations.mean()
    variance = weights @ centred**2 / total - (weights @ centred / total) ** 2
    error = weights @ (activations - predicted) ** 2 / total
    # Relative to the values, since rounding leaves a little variance in equal ones.
    flat = variance <= 1e-12 * max(float(np.square(centred).max()), 1e-300)
    return np.where(flat, np.nan, 1 - error / np.where(flat, 1.0, variance))


def _fit(activations: Floats, presence: Floats, weights: Floats) -> tuple[float, float]:
    """Return intercept and slope of least squares, the slope at least 0."""
    mean, middle = (float(np.average(each, weights=weights)) for each in (activations, presence))
    spread = float(np.average((presence - middle) ** 2, weights=weights))
    joint = float(np.average((presence - middle) * (activations - mean), weights=weights))
    # Never negative: an inverted label predicts nothing.
    slope = max(0.0, joint / spread) if spread > 1e-12 else 0.0
    return mean - slope * middle, slope


def _estimate(figure: Statistic, sample: NaturalSample, seed: int, resamples: int) -> Estimate:
    """Return a figure, with an interval if the scored half has enough positives and negatives."""
    n = len(sample.activations)
    value = float(figure(sample.activations, sample.presence, sample.weights[None])[0])
    if not np.isfinite(value):
        return Estimate(None, n=n, why="the activation, or the answer, is the same on every image of the half")
    positives = int((sample.presence >= PRESENT).sum())
    # Intervals depend on the rarer kind of image.
    fewer = min(positives, n - positives)
    if not resamples or fewer < MIN_POSITIVES:
        return Estimate(value, n=n, why=f"{fewer} images of the fewer kind, and an interval takes {MIN_POSITIVES}")
    return estimate_interval(figure, sample, seed=seed, resamples=resamples)
