"""Correct r and the base rate of a label for the errors of the judge that says which images show it.

A judge with false positives and misses makes r smaller than the label's true r. If its errors do not depend on the
activation, this can be undone. With q the share that it calls described, a its rate of false positives and b that of
false negatives, the true base rate is p = (q - a) / (1 - a - b) (Rogan and Gladen 1978). Its answers covary with
activation (1 - a - b) times as much as the truth does, and their variance is q (1 - q) instead of p (1 - p). So r is
sqrt(p (1 - p) / (q (1 - q))) (1 - a - b) times the true r.

The assumption fails if a judge errs on the same images as the unit, such as two networks that confuse the same toys.
Then r is too high before correction, and even higher after it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workers.metrics.natural import PRESENT, RESAMPLES, correlate
from workers.metrics.natural_intervals import NaturalSample, bound_draws, draw_weights, keep_defined
from workers.record.estimates import Estimate
from workers.record.label_checks import MIN_POSITIVES, CorrectedFigures, JudgeError

Floats = NDArray[np.float64]

MIN_SKILL = 0.1
"""1 - false positives - false negatives below which a judge is too near to chance for its errors to be undone."""


def correct_figures(
    activations: ArrayLike,
    answers: ArrayLike,
    weights: ArrayLike | None,
    error: JudgeError,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> CorrectedFigures | None:
    """Return r and the base rate corrected for the judge's errors. Arguments as for `score_natural`.

    Intervals resample images and draw both error rates from their posterior (a beta distribution with Jeffreys' prior).
    None if an error rate or r could not be measured.
    """
    sample = _read_sample(activations, answers, weights)
    wrong, missed = error.false_positives.value, error.false_negatives.value
    if sample is None or wrong is None or missed is None:
        return None
    n, described = len(sample.presence), int(sample.presence.sum())
    r = correlate(sample.activations, sample.presence, sample.weights[None])
    called = np.array([np.average(sample.presence, weights=sample.weights)])
    if not np.isfinite(r).all():
        # A constant side has no r to correct.
        return None
    point = _undo(r, called, np.array([wrong]), np.array([missed]))
    if not np.isfinite(point).all():
        failed = Estimate(None, n=n, why=_explain(float(called[0]), wrong, missed))
        return CorrectedFigures(failed, failed)
    # Both kinds are needed: the correction divides by their variance.
    fewer = min(described, n - described)
    if fewer < MIN_POSITIVES:
        why = f"too few images of either kind for an interval: {fewer}, and it takes {MIN_POSITIVES}"
        return CorrectedFigures(*(Estimate(float(each), n=n, why=why) for each in point[:, 0]))
    drawn = _draw(sample, error, seed, resamples)
    return CorrectedFigures(*(_bound(float(value), each, n) for value, each in zip(point[:, 0], drawn, strict=True)))


def _read_sample(activations: ArrayLike, answers: ArrayLike, weights: ArrayLike | None) -> NaturalSample | None:
    acts, said = (np.asarray(each, np.float64) for each in (activations, answers))
    heavy = np.ones_like(acts) if weights is None else np.asarray(weights, np.float64)
    known = np.isfinite(acts) & np.isfinite(said)
    if not known.any() or heavy[known].sum() <= 0:
        return None
    # Yes or no, as when the error was measured.
    return NaturalSample(acts[known], (said[known] >= PRESENT).astype(np.float64), heavy[known])


def _undo(r: Floats, called: Floats, wrong: Floats, missed: Floats) -> Floats:
    """Return corrected r and base rate, (2, draws); NaN if the errors alone explain the answers."""
    # Divided by: a judge near to chance would make any r of nothing.
    skill = 1 - wrong - missed
    able = skill >= MIN_SKILL
    true = np.where(able, (called - wrong) / np.where(able, skill, 1.0), np.nan)
    able &= (true > 0) & (true < 1)
    spread = np.where(able, true * (1 - true), 1.0)
    found = r * np.sqrt(called * (1 - called) / spread) / np.where(able, skill, 1.0)
    # Out of range by chance alone: r lies in [-1, 1].
    return np.where(able, np.stack([np.clip(found, -1, 1), true]), np.nan)


def _draw(sample: NaturalSample, error: JudgeError, seed: int, resamples: int) -> Floats:
    """Return corrected r and base rate for resampled images and error rates, (2, resamples)."""
    groups, counts = sample.group()
    parts = []
    for rows in draw_weights(counts, resamples, seed):
        heavy = rows * groups.weights
        called = heavy @ groups.presence / heavy.sum(1)
        parts.append(np.stack([correlate(groups.activations, groups.presence, heavy), called]))
    r, called = np.concatenate(parts, 1)
    # Another stream than that of the images: their errors are independent.
    rng = np.random.default_rng([seed, 1])
    wrong, missed = (
        # Jeffreys' prior adds one half to each count.
        rng.beta(round((each.value or 0) * each.n) + 0.5, round((1 - (each.value or 0)) * each.n) + 0.5, resamples)
        for each in (error.false_positives, error.false_negatives)
    )
    return _undo(r, called, wrong, missed)


def _bound(value: float, drawn: Floats, n: int) -> Estimate:
    known = keep_defined(drawn)
    if known is None:
        why = "no interval: by what the known images leave open, its errors may account for all that it sees"
        return Estimate(value, n=n, why=why)
    return Estimate(value, *bound_draws(value, known), n)


def _explain(called: float, wrong: float, missed: float) -> str:
    """Return why the errors cannot be undone."""
    if 1 - wrong - missed < MIN_SKILL:
        return "cannot be corrected: on known images the judge is hardly better than chance"
    if called <= wrong:
        return (
            f"cannot be corrected: it describes {called:.1%} of these images, and its false positives alone, "
            f"{wrong:.1%} of known ones, would account for that"
        ).replace("%", " %")
    return "cannot be corrected: its errors on known images would leave no image undescribed"
