"""How well a label predicts a unit on natural images: activation against presence on a held-out sample.

This is the main result of every label check. Pearson's correlation and average precision fall both when a label is
too narrow and when it is too broad, unlike most figures (Oikarinen, Yan and Weng, ICML 2025, "NeuronEval").
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workers.metrics.natural_intervals import NaturalSample, Statistic, estimate_interval, find_p_value
from workers.metrics.ranking import weighted_average_precision
from workers.record.estimates import CONFIDENCE, Estimate
from workers.record.label_checks import MIN_POSITIVES

Floats = NDArray[np.float64]

RESAMPLES = 1_000
PRESENT = 0.5
"""Probability from which a concept counts as present, if yes or no is needed."""
WANTED = 50
"""Positives to measure, if there are enough images. r then has an interval of about 0.12 for a unit that responds to
nothing else, and few samples have fewer than `MIN_POSITIVES`."""
STEP = 1_000
"""Numbers of images are multiples of this, so that labels of a layer are measured on the same images."""
_FLAT = 1e-12
"""Standardized values with a smaller variance count as constant."""


@dataclass(frozen=True)
class Decile:
    """A tenth of the images by activation."""

    low: float | None
    high: float | None
    """Its lowest and highest activation; None if it is empty, which happens because equal activations stay together."""
    n: int
    present: float | None
    """Mean presence, in [0, 1]."""
    r: float | None
    """Pearson's correlation within it; None if either side is constant."""


@dataclass(frozen=True)
class NaturalScores:
    """How activation and presence are related over a sample of natural images. The n of each figure counts images."""

    r: Estimate
    """Pearson's correlation."""
    auprc: Estimate
    """Average precision of activation as a score for presence. The chance level is the base rate."""
    f1: float | None
    """F1 of "activation above the threshold" as a prediction of presence; None without a threshold or positives."""
    p_value: float | None
    """p-value of r = 0 from a permutation test; None without r."""
    threshold: float | None
    base_rate: float | None
    """Mean presence, in [0, 1]."""
    positives: int
    """Images with a presence of at least `PRESENT`."""
    n: int
    """Images with an answer and an activation."""
    missing: int
    """Images without an answer or an activation, which are left out."""
    deciles: tuple[Decile, ...]
    """Ten, lowest activations first; empty without images."""


@dataclass(frozen=True)
class Surprises:
    """Positions of the images that contradict a label most, worst first."""

    bright: tuple[int, ...]
    """Concept absent, although the unit is brightest."""
    dark: tuple[int, ...]
    """Concept present, although the unit is darkest."""


def score_natural(
    activations: ArrayLike,
    presence: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    threshold: float | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> NaturalScores:
    """Score a label by activations (n,) and presence (n,), bool or a probability in [0, 1]; NaN if unknown.

    `weights` (n,) say how many images each stands for in a non-uniform sample (see `strata`), on any scale,
    non-negative. Without `resamples` there are no intervals. Raises ValueError for unequal lengths or values out of
    range.
    """
    every, kept = _read(activations, presence, weights)
    acts, there, heavy = (each[kept] for each in every)
    missing = len(kept) - len(acts)
    if not len(acts):
        nothing = Estimate(None, why="no image has both an activation and an answer")
        return NaturalScores(nothing, nothing, None, None, threshold, None, 0, 0, missing, ())
    sample = NaturalSample(acts, there, heavy)
    # Intervals depend on the rarer kind of image.
    positives = int((there >= PRESENT).sum())
    why = _explain_undefined(acts, there)
    r = Estimate(None, n=len(acts), why=why) if why else _estimate(correlate, sample, positives, seed, resamples)
    area = Estimate(None, n=len(acts), why="no image shows it")
    if there.any():
        area = _estimate(weighted_average_precision, sample, positives, seed, resamples)
    # With the data themselves a round number, so p is a multiple of 1 / (2 * resamples).
    p_value = find_p_value(sample, seed=seed, permutations=2 * resamples - 1) if resamples and not why else None
    return NaturalScores(
        r=_agree(r, p_value),
        auprc=area,
        f1=None if threshold is None or not there.any() else float(_f1(threshold, acts, there, heavy[None])[0]),
        p_value=p_value,
        threshold=threshold,
        base_rate=float(np.average(there, weights=heavy)),
        positives=positives,
        n=len(acts),
        missing=missing,
        deciles=_split_deciles(acts, there, heavy),
    )


def plan_images(positives: int, n: int) -> int:
    """Return how many images, with the pilot's `n` among them, should contain `WANTED` positives."""
    if positives >= WANTED:
        return n
    # Laplace's rule of succession, which adds one positive and one negative: a pilot may have no positives.
    return max(n, STEP * math.ceil(WANTED * (n + 2) / (positives + 1) / STEP))


def correlate(activations: Floats, presence: Floats, weights: Floats) -> Floats:
    """Return Pearson's correlation of two vectors (n,) for each row of weights (rows, n); NaN if either is constant.

    No value may be missing, and weights are non-negative.
    """
    # Standardised first: the differences of squares below would lose all digits of large activations.
    one, two = _standardise(activations), _standardise(presence)
    total = weights.sum(1)
    # As means of products: one matrix product for all resamples at once.
    means = [weights @ each / total for each in (one, two)]
    spreads = [weights @ each**2 / total - mean**2 for each, mean in zip((one, two), means, strict=True)]
    joint = weights @ (one * two) / total - means[0] * means[1]
    flat = (spreads[0] < _FLAT) | (spreads[1] < _FLAT)
    scale = np.sqrt(np.where(flat, 1.0, spreads[0] * spreads[1]))
    # Rounding may lead beyond 1.
    return np.where(flat, np.nan, np.clip(joint / scale, -1, 1))


def find_surprises(activations: ArrayLike, presence: ArrayLike, count: int = 8) -> Surprises:
    """Return the images that contradict a label most, up to `count` of each kind. Arguments as for `score_natural`."""
    (acts, there, _), kept = _read(activations, presence, None)
    # Stable, so that equal activations keep the order of the dataset.
    order = np.argsort(acts, kind="stable")
    seen = there >= PRESENT
    bright = [int(each) for each in order[::-1] if kept[each] and not seen[each]]
    dark = [int(each) for each in order if kept[each] and seen[each]]
    return Surprises(tuple(bright[:count]), tuple(dark[:count]))


def _estimate(figure: Statistic, sample: NaturalSample, positives: int, seed: int, resamples: int) -> Estimate:
    """Return a figure, with an interval if there are enough positives and negatives."""
    n = len(sample.activations)
    kind, fewer = min(("positives", positives), ("negatives", n - positives), key=lambda each: each[1])
    if resamples and fewer >= MIN_POSITIVES:
        return estimate_interval(figure, sample, seed=seed, resamples=resamples)
    value = float(figure(sample.activations, sample.presence, sample.weights[None])[0])
    return Estimate(
        value, n=n, why=f"too few {kind} for an interval: {fewer} of {n:,} images, and it takes {MIN_POSITIVES}"
    )


def _agree(r: Estimate, p_value: float | None) -> Estimate:
    """Include 0 in the interval if the test cannot distinguish r from 0."""
    if p_value is None or r.low is None or r.high is None or p_value <= 1 - CONFIDENCE:
        return r
    # As where unit and label never coincide: every resample then has the same r.
    return Estimate(r.value, min(r.low, 0.0), max(r.high, 0.0), r.n)


def _read(
    activations: ArrayLike, presence: ArrayLike, weights: ArrayLike | None
) -> tuple[tuple[Floats, Floats, Floats], NDArray[np.bool_]]:
    """Return the three vectors, and where all are known. Raises ValueError for unequal lengths or values out of
    range."""
    acts, there = (np.asarray(each, np.float64) for each in (activations, presence))
    heavy = np.ones_like(acts) if weights is None else np.asarray(weights, np.float64)
    if not acts.shape == there.shape == heavy.shape or acts.ndim != 1:
        raise ValueError(
            f"Activations {acts.shape}, presence {there.shape} and weights {heavy.shape} must be vectors of one length."
        )
    kept = np.isfinite(acts) & np.isfinite(there)
    if ((there[kept] < 0) | (there[kept] > 1)).any():
        raise ValueError("Presence must lie in [0, 1], NaN where it is unknown.")
    if not np.isfinite(heavy).all() or (heavy < 0).any() or (kept.any() and heavy[kept].sum() <= 0):
        raise ValueError("Weights must be 0 or more, and some above 0.")
    return (acts, there, heavy), kept


def _explain_undefined(activations: Floats, presence: Floats) -> str:
    """Return why the correlation is undefined; "" if it is defined."""
    if np.ptp(activations) == 0:
        return f"every image has the same activation, {activations[0]:.4g}"
    if np.ptp(presence) == 0:
        return "no image shows it" if presence[0] == 0 else "every image shows it alike"
    return ""


def _standardise(values: Floats) -> Floats:
    """Return values with mean 0 and standard deviation 1; zeros for a constant."""
    centred = values - values.mean()
    spread = centred.std()
    return centred / spread if spread > 0 else np.zeros_like(centred)


def _f1(threshold: float, activations: Floats, presence: Floats, weights: Floats) -> Floats:
    """Return the harmonic mean of precision and recall, (rows,): twice the hits over predicted plus present."""
    # Presence may be a degree; then F1 counts shares of images.
    guessed = (activations > threshold).astype(np.float64)
    both = weights @ (guessed + presence)
    return np.divide(2 * (weights @ (guessed * presence)), both, out=np.full_like(both, np.nan), where=both > 0)


def _split_deciles(activations: Floats, presence: Floats, weights: Floats) -> tuple[Decile, ...]:
    """Split into ten parts of equal weight by activation."""
    _, group = np.unique(activations, return_inverse=True)
    sizes = np.bincount(group, weights)
    middle = (np.cumsum(sizes) - sizes / 2) / sizes.sum()
    # By the middle of each group, so that equal activations stay together.
    part = np.minimum((10 * middle).astype(int), 9)[group]
    return tuple(_describe(activations[part == k], presence[part == k], weights[part == k]) for k in range(10))


def _describe(activations: Floats, presence: Floats, weights: Floats) -> Decile:
    if not len(activations) or not weights.sum():
        return Decile(None, None, 0, None, None)
    r = float(correlate(activations, presence, weights[None])[0])
    present = float(np.average(presence, weights=weights))
    low, high = float(activations.min()), float(activations.max())
    return Decile(low, high, len(activations), present, None if np.isnan(r) else r)
