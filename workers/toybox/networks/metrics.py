"""Metrics of the toybox networks: accuracy, mean average precision, intersection over union. Exact, in plain NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from workers.metrics.ranking import average_precision

Floats = NDArray[np.floating]
Bools = NDArray[np.bool_]
Ints = NDArray[np.integer]


def mean_average_precision(scores: Floats, truth: Bools) -> float:
    """Return the mean over those columns (classes) of (n, classes) that have a positive."""
    return float(np.nanmean([average_precision(scores[:, k], truth[:, k]) for k in range(scores.shape[1])]))


def top1_accuracy(scores: Floats, answers: Ints) -> float:
    """Return the share of rows of (n, classes) whose highest score is at the answer (n,)."""
    return float((scores.argmax(axis=1) == answers).mean())


def confusion(predicted: Ints, truth: Ints, classes: int) -> NDArray[np.int64]:
    """Return counts (classes, classes): rows are the truth, columns the predictions."""
    pairs = truth.ravel().astype(np.int64) * classes + predicted.ravel()
    return np.bincount(pairs, minlength=classes * classes).reshape(classes, classes)


def intersection_over_union(counts: NDArray[np.int64]) -> Floats:
    """Return the figure for each class of a confusion matrix; NaN for a class that is neither present nor predicted."""
    both = np.diag(counts).astype(np.float64)
    either = counts.sum(axis=0) + counts.sum(axis=1) - both
    return np.divide(both, either, out=np.full_like(both, np.nan), where=either > 0)
