"""The distance of a label from its floors: r and AUPRC minus those of several foreign labels or random units.

All are measured on the same images. One floor may be high or low by chance; several have a mean and a spread. The
interval of "label minus floor" includes 0 for 95 % of labels that are no better than a floor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from workers.metrics.natural_intervals import bound_draws, draw_weights
from workers.record.estimates import Estimate
from workers.record.label_checks import FloorFigure

Floats = NDArray[np.float64]

MIN_FLOORS = 3
"""Minimum number of floors for an interval."""
_FLAT = 1e-12
"""Standardized values with a smaller variance count as constant."""


@dataclass(frozen=True)
class FloorScores:
    """Figures of each floor in order, None if undefined, and their summary."""

    each: tuple[tuple[float | None, float | None], ...]
    """r and AUPRC of each floor."""
    pearson: FloorFigure
    auprc: FloorFigure


@dataclass(frozen=True)
class Answered:
    """Activations and presence of the same images, both (n,); NaN if unknown."""

    activations: Floats
    presence: Floats


def score_floors(
    label: Answered,
    floors: Sequence[Answered],
    weights: Floats | None,
    pearson: Estimate,
    auprc: Estimate,
    *,
    seed: int,
    resamples: int,
) -> FloorScores:
    """Compare a label, whose `pearson` and `auprc` are given, with floors on the same n images.

    `weights` (n,) as for `score_natural`. AUPRC of a foreign label has that label's own base rate. Raises ValueError
    for unequal lengths.
    """
    rows = _Rows([label, *floors])
    heavy = np.ones(rows.n) if weights is None else np.asarray(weights, np.float64)
    points = rows.score(heavy[:, None])[:, :, 0]
    draws = _draw(rows, heavy, seed, resamples)
    # Another stream than that of the bootstrap, or the floor's spread would follow its draws.
    rng = np.random.default_rng([seed, len(floors)])
    r, area = (_summarise(own, points[at, 1:], draws[at], rng) for at, own in enumerate((pearson, auprc)))
    each = tuple((_clean_nan(one), _clean_nan(two)) for one, two in points[:, 1:].T)
    return FloorScores(each, r, area)


def _draw(rows: _Rows, weights: Floats, seed: int, resamples: int) -> Floats:
    """Return r and AUPRC of each row in Bayesian bootstraps (Rubin 1981), (2, rows, resamples)."""
    # The same images for all rows, so that the differences between rows are paired.
    drawn = draw_weights(np.ones(rows.n), resamples, seed)
    return np.concatenate([rows.score(np.ascontiguousarray((block * weights).T)) for block in drawn], 2)


def _summarise(own: Estimate, floors: Floats, draws: Floats, rng: np.random.Generator) -> FloorFigure:
    """Summarize one figure from the floors' values (floors,) and draws (1 + floors, resamples), the label first."""
    known = np.isfinite(floors)
    values, count = floors[known], int(known.sum())
    if not count:
        return FloorFigure()
    mean = float(values.mean())
    figure = FloorFigure(mean, None, float(values.min()), float(values.max()))
    if count > 1:
        figure = FloorFigure(mean, float(values.std(ddof=1)), figure.least, figure.most)
    if own.value is None:
        return figure
    # Without an interval of the label's own figure there is none of the difference.
    above = own.value - mean
    if own.low is None or own.high is None:
        found = Estimate(above, n=own.n, why=own.why)
    elif count < MIN_FLOORS:
        found = Estimate(above, n=own.n, why=f"too few floors for an interval: it takes {MIN_FLOORS}")
    else:
        low, high = _find_interval(above, values, draws[0], draws[1:][known], rng)
        # A difference is not surer than the figure itself, whose interval allows for images that the sample lacks
        found = Estimate(above, min(low, own.low - mean), max(high, own.high - mean), own.n)
    return FloorFigure(figure.mean, figure.sd, figure.least, figure.most, found)


def _find_interval(
    above: float, values: Floats, label: Floats, floors: Floats, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the interval of a label minus the mean of floors, from draws (resamples,) and (floors, resamples).

    Images are resampled, and the floors are a sample of all possible floors. Besides the error of their mean, a
    label that is no better differs from the mean as one floor does: Student's prediction of one more value.
    """
    count = len(values)
    # 1. Floors differ by what they are and by which images were drawn; resampling adds the second once more.
    spread = float(values.var(ddof=1))
    own_spread = max(0.0, 2 * spread - float(floors.var(axis=0, ddof=1).mean()))
    # 2. One more floor, beside the mean of those that are there
    further = rng.standard_t(count - 1, len(label)) * np.sqrt(own_spread * (1 + 1 / count))
    # 3. The label less the mean, by the same images
    drawn = label - floors.mean(axis=0)
    return bound_draws(above, drawn + further, bias=float(drawn.mean()) - above)


class _Rows:
    """Several pairs of activations and presence over the same images, prepared for scoring under many weights at
    once."""

    def __init__(self, pairs: Sequence[Answered]) -> None:
        self.n = len(pairs[0].activations)
        if any(len(each) != self.n for pair in pairs for each in (pair.activations, pair.presence)):
            raise ValueError("Activations and presence of a label and its floors must be of the same images.")
        self._moments = np.concatenate([_list_moments(pair) for pair in pairs])
        self._ranks = [_rank(pair) for pair in pairs]

    def score(self, weights: Floats) -> Floats:
        """Return r and AUPRC, (2, rows, columns), under columns of non-negative weights (n, columns)."""
        total, x, y, xx, yy, xy = (self._moments @ weights).reshape(len(self._ranks), 6, -1).swapaxes(0, 1)
        # NaN is replaced below where a side is constant.
        with np.errstate(divide="ignore", invalid="ignore"):
            x, y, xx, yy, xy = (each / total for each in (x, y, xx, yy, xy))
            # Rounding may make these slightly negative; such rows count as constant.
            spreads = (xx - x * x, yy - y * y)
            flat = ~((spreads[0] > _FLAT) & (spreads[1] > _FLAT))
            r = np.where(flat, np.nan, np.clip((xy - x * y) / np.sqrt(spreads[0] * spreads[1]), -1, 1))
        return np.stack([r, np.stack([_average_precision(above, hits, weights) for above, hits in self._ranks])])


def _list_moments(pair: Answered) -> Floats:
    """Return the terms of r, (6, n), which are summed with weights; 0 if something is unknown."""
    known = np.isfinite(pair.activations) & np.isfinite(pair.presence)
    x, y = (_standardise(np.where(known, each, 0.0), known) for each in (pair.activations, pair.presence))
    return np.stack([known.astype(np.float64), x, y, x * x, y * y, x * y])


def _standardise(values: Floats, known: NDArray[np.bool_]) -> Floats:
    """Return values with mean 0 and variance 1 over the known ones; 0 elsewhere."""
    some = values[known]
    # Zeros: their variance is 0, and `score` gives no r for them.
    if not len(some) or np.ptp(some) == 0:
        return np.zeros_like(values)
    # So that the sums of squares lose no digits.
    return np.where(known, (values - some.mean()) / some.std(), 0.0)


def _rank(pair: Answered) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Rank images by activation, cut after each group of equal ones that holds a described image.

    Returns which images are in each part, and how much each is described, both (parts, n). Average precision needs
    no more of their order.
    """
    known = np.flatnonzero(np.isfinite(pair.activations) & np.isfinite(pair.presence))
    presence = pair.presence[known]
    # Negative: the highest activation comes first.
    _, group = np.unique(-pair.activations[known], return_inverse=True)
    # Average precision changes only where a group holds a described image.
    ends = np.flatnonzero(np.bincount(group, presence) > 0)
    part = np.searchsorted(ends, group)
    shape = (len(ends), len(pair.activations))
    above, hits = part < len(ends), presence > 0  # below the last described image nothing matters
    return (
        sparse.csr_array((np.ones(int(above.sum())), (part[above], known[above])), shape),
        sparse.csr_array((presence[hits], (part[hits], known[hits])), shape),
    )


def _average_precision(above: sparse.csr_array, hits: sparse.csr_array, weights: Floats) -> Floats:
    """Return the average precision, (columns,), as `ranking.weighted_average_precision` does; NaN without hits."""
    gains = hits @ weights
    found, seen = np.cumsum(gains, 0), np.cumsum(above @ weights, 0)
    precision = np.divide(found, seen, out=np.zeros_like(found), where=seen > 0)
    total = gains.sum(0)
    return np.divide((precision * gains).sum(0), total, out=np.full_like(total, np.nan), where=total > 0)


def _clean_nan(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
