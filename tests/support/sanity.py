"""Missing-label and extra-label tests of metrics (Oikarinen, Yan and Weng, ICML 2025): which fall for worse labels?

A unit is an activation for each image, drawn by chance or measured, and the images that truly show its concept. Half of
these are taken from the label (too narrow), or as many others added (too broad); a sound metric falls. Used by a test
and by a bench.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from workers import registry
from workers.lab.laboratory import Laboratory
from workers.lab.measured_splits import PILOT
from workers.metrics.detection import score_detection, score_intruder
from workers.metrics.generated import score_generated, score_predictiveness
from workers.metrics.natural import correlate, plan_images
from workers.metrics.ranking import area_under_curve, average_precision
from workers.metrics.simulation import score_simulation
from workers.protocols import LabSettings, Picture
from workers.record.estimates import Estimate
from workers.toybox.dataset import ToyboxScenes

Metric = Callable[[NDArray, NDArray], float]
Unit = tuple[NDArray, NDArray]
"""Activations (n,) and presence (n,), bool."""
FEWEST, AT_ONCE = 10, 50
"""Scenes that show a real unit's concept, at least; scenes of a batch."""
MOST = 20_000
"""Held-out scenes of toybox."""
LEAST = 0.001
"""By how much a score must fall, of the range of the metric."""


def pearson(activations: NDArray, there: NDArray) -> float:
    return float(correlate(activations, there.astype(float), np.ones((1, len(there))))[0])


def _f1(activations: NDArray, there: NDArray) -> float:
    """At the threshold of the product, whatever the unit truly has."""
    guessed = activations > np.quantile(activations, 0.99)
    return 2 * (guessed & there).sum() / (guessed.sum() + there.sum())


def _mad(activations: NDArray, there: NDArray) -> float:
    return score_generated(activations[there], [], activations[~there]).cosy_mad or 0.0


def _predictiveness(activations: NDArray, there: NDArray) -> float:
    """Over ten images of each side, the threshold half of the mean of the 15 brightest."""
    rng = np.random.default_rng(0)
    sides = [rng.choice(activations[side], 10) for side in (there, ~there)]
    return score_predictiveness(*sides, float(np.sort(activations)[-15:].mean())).share.value or 0.0


def _detection(figure: str, share: float) -> Metric:
    """A figure of detection, of a unit whose mask threshold so large a share of the images exceeds."""

    def score(activations: NDArray, there: NDArray) -> float:
        found = score_detection(activations, there, float(np.quantile(activations, 1 - share)))
        value = getattr(found, figure)
        return float((value.value if isinstance(value, Estimate) else value) or 0.0)

    return score


def _intruder(share: float) -> Metric:
    def score(activations: NDArray, there: NDArray) -> float:
        return score_intruder(activations, there, float(np.quantile(activations, 1 - share))).share.value or 0.0

    return score


def _explained(activations: NDArray, there: NDArray) -> float:
    return score_simulation(activations, there, resamples=0).explained_variance.value or 0.0


ACTIVATING = (0.1, 0.3)
"""Shares of the images that activate a unit: as of toybox-eyes' neurons, and of units of toybox's layer4."""

METRICS: Mapping[str, tuple[Metric, float]] = {
    "Pearson r": (pearson, 2.0),
    "AUPRC": (average_precision, 1.0),
    "F1 at a quantile of 0.99": (_f1, 1.0),
    "AUC, label against the rest (CoSy)": (lambda a, c: area_under_curve(a[c], a[~c]), 1.0),
    "MAD (CoSy)": (_mad, 1.0),
    "mean of the label's images (MAIA +)": (lambda a, c: float(a[c].mean()), 1.0),
    "difference of MAIA's two means": (lambda a, c: float(a[c].mean() - a[~c].mean()), 1.0),
    "predictiveness, 10 + 10 (SAIA)": (_predictiveness, 1.0),
    "explained variance, simulation": (_explained, 1.0),
    **{
        f"{name}, {share:.0%} activate": (metric, 1.0)
        for share in ACTIVATING
        for name, metric in {
            "balanced accuracy, detection": _detection("balanced_accuracy", share),
            "F1, detection": _detection("f1", share),
            "precision, detection": _detection("precision", share),
            "recall, detection": _detection("recall", share),
            "intruder test": _intruder(share),
        }.items()
    },
}
"""Metric and the length of its range; of those without bounds, 1 standard deviation of the activations."""


def make_units(count: int, frequency: float, seed: int) -> list[Unit]:
    """Synthetic units over as many images as a check takes: the truth has a frequency, and excites the unit by 1 to 4
    deviations over its noise."""
    rng = np.random.default_rng(seed)
    n = min(plan_images(round(frequency * PILOT), PILOT), MOST)
    made = []
    for _ in range(count):
        there = np.zeros(n, bool)
        there[rng.choice(n, max(2, round(frequency * n)), replace=False)] = True
        made.append((rng.normal(0, 1, n) + rng.uniform(1, 4) * there, there))
    return made


def read_real_units(state: Path, seed: int, images: int) -> list[Unit]:
    """The synthetic neurons of a seed, of toybox-eyes, over so many scenes: what the detector measures, and what the
    scenes say of the truth as a label. Those that fewer than `FEWEST` scenes show are left out."""
    settings, name = LabSettings(state), f"synthetic:toybox-eyes:seed-{seed}"
    dataset, laboratory = ToyboxScenes(state, images), Laboratory(LabSettings(state))
    layers = laboratory.layers(name)
    scenes = [dataset.scene(at) for at in range(images)]
    values: dict[str, list[NDArray]] = {layer.name: [] for layer in layers}
    for start in range(0, images, AT_ONCE):
        pictures = [dataset[at].image for at in range(start, min(start + AT_ONCE, images))]
        for layer, maps in laboratory.model(name).maps(pictures, list(values)).items():
            values[layer].append(maps.amax((2, 3)).numpy())
    judge = registry.load(registry.PRESENCE_JUDGES, "toybox")(settings)
    blank = Image.new("RGB", (1, 1))
    shown = [Picture(blank, scene) for scene in scenes]
    units = [
        (np.concatenate(values[layer.name])[:, unit], np.array(judge.judge(truth, shown), bool))
        for layer in layers
        for unit, truth in enumerate(layer.names)
    ]
    return [(activations, there) for activations, there in units if there.sum() >= FEWEST]


def share_falling(metric: str, units: Iterable[Unit], seed: int = 0) -> tuple[float, float]:
    """Shares of units whose score falls when half of the labels are missing, and when as many are added; in [0, 1]."""
    score, span = METRICS[metric]
    rng = np.random.default_rng(seed)
    falls = []
    for activations, there in units:
        fewer, more = there.copy(), there.copy()
        positive, negative = np.flatnonzero(there), np.flatnonzero(~there)
        fewer[rng.choice(positive, len(positive) // 2, replace=False)] = False
        more[rng.choice(negative, min(len(positive), len(negative) - 1), replace=False)] = True
        scaled = activations / activations.std()
        right = score(scaled, there)
        falls.append([right - score(scaled, worse) > LEAST * span for worse in (fewer, more)])
    missing, extra = np.mean(falls, axis=0)
    return float(missing), float(extra)
