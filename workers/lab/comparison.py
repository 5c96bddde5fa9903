"""Check that published exemplars belong to the model at hand, by what it gives for the same images.

A release names the images that excite a unit most, and their activations. Used by `exemplars`; measures a few units
only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.lab.imaging import bright_region
from workers.metrics.ranking import area_under_curve
from workers.protocols import Dataset, Progress, PublishedLayer, VisionModel, visible_part

UNITS = 16
"""Units compared, evenly taken from those in the release."""
MIN_ORDER = 0.75
"""Minimum AUC. Other weights give about 0.5, the same ones nearly 1; crops and recompressed images cost a little."""
MIN_CORRELATION = 0.75
"""Minimum correlation; it decides between 0.5 and 1 of the AUC, where units are so alike that their images are."""
MAX_RATIO = 2.0
"""Maximum factor between the median activations, in either direction."""
MAX_ACTIVATIONS = 5
"""Activations of a unit that a sentence names."""


@dataclass(frozen=True)
class ExemplarComparison:
    """The published figures of some units of a layer, and what the model gives for the same images."""

    model: str
    layer: str
    unit: int
    """The unit whose figures are shown: the one that differs most."""
    published: tuple[float, ...]
    measured: tuple[float, ...]
    """Activations of its best images, in the published order."""
    order: float
    """Mean area under the ROC curve of a unit's own images against those of other units; NaN with a single unit."""
    correlation: float
    """Correlation of published and measured activations over all images; NaN if either is constant."""
    ratio: float
    """Median of measured over published activations."""
    overlap: float
    """Median intersection over union of the masks; NaN where no masks were published."""

    @property
    def differs(self) -> bool:
        """True if the release is of other weights."""
        # With the same weights, a unit responds most to its own published images, about as much as published. Masks
        # alone decide nothing: others may have cut them differently.
        alike = self.order >= MIN_ORDER or self.correlation >= MIN_CORRELATION
        alone = np.isnan(self.order) and np.isnan(self.correlation)
        return not (alike or alone) or not 1 / MAX_RATIO <= self.ratio <= MAX_RATIO

    def __str__(self) -> str:
        was, now = (
            ", ".join(f"{each:.4g}" for each in some[:MAX_ACTIVATIONS]) for some in (self.published, self.measured)
        )
        masks = "" if np.isnan(self.overlap) else f", and its masks cover {self.overlap:.0%} of the published ones"
        order = "" if np.isnan(self.order) else f"; it sets a unit's images apart with an AUC of {self.order:.2f}"
        return (
            f"of unit {self.unit} of {self.layer} it says {was}, where {self.model} gives {now} for the same "
            f"images{order}{masks}"
        )


def compare_exemplars(
    found: PublishedLayer, layer: str, model: VisionModel, dataset: Dataset, batch_size: int, progress: Progress
) -> ExemplarComparison | None:
    """Compare published and measured exemplars. Returns None if all published activations of each unit are alike."""
    # Where all activations of a unit are equal they have no order to compare.
    useful = np.flatnonzero(np.ptp(found.activations, axis=0) > 0)
    if not useful.size:  # as where there is one image of each unit
        useful = np.flatnonzero(found.activations[0] != 0)
    if not useful.size:
        return None
    units = useful[np.unique(np.linspace(0, len(useful) - 1, min(UNITS, len(useful))).round().astype(int))]
    published = found.activations[:, units].T.astype(float)  # (units, images)
    positions = found.positions[:, units].T
    measured, overlaps = _measure(positions, units, layer, model, dataset, found.thresholds, batch_size, progress)
    own = np.stack([measured[row, row] for row in range(len(units))])  # (units, images)
    # A published activation may be 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = own / published
        distance = np.abs(own - published).mean(1) / np.abs(published).mean(1)
    # The one that differs most is the most telling example in a message.
    worst = int(np.nanargmax(distance))
    return ExemplarComparison(
        model.name,
        layer,
        int(units[worst]),
        tuple(published[worst].tolist()),
        tuple(own[worst].tolist()),
        _order(measured),
        float(np.corrcoef(own.ravel(), published.ravel())[0, 1]) if np.ptp(own) and np.ptp(published) else float("nan"),
        # The median: a single image that was recompressed badly must not decide.
        float(np.nanmedian(ratios[np.isfinite(ratios)])) if np.isfinite(ratios).any() else float("nan"),
        float(np.median(overlaps)) if overlaps else float("nan"),
    )


def _measure(
    positions: NDArray[np.integer],
    units: NDArray[np.integer],
    layer: str,
    model: VisionModel,
    dataset: Dataset,
    thresholds: NDArray[np.float64] | None,
    batch_size: int,
    progress: Progress,
) -> tuple[NDArray[np.float64], list[float]]:
    """Measure activations (units whose images they are, units, images), and the overlaps of each unit's masks."""
    masks: Callable[[int], NDArray[np.bool_] | None] | None = getattr(dataset, "mask", None)
    # All images of all units in one list, so that batches are full.
    order, size = positions.ravel(), positions.shape[1]
    activations, overlaps = np.empty((len(units), len(units), size)), []
    for start in range(0, len(order), batch_size):
        progress(f"Comparing published exemplars of {layer} with {model.name}", start, len(order))
        some = range(start, min(start + batch_size, len(order)))
        images = [dataset[int(order[at])].image for at in some]
        maps = model.maps(images, [layer])[layer][:, units.tolist()].numpy(force=True)
        for at, image, each in zip(some, images, maps, strict=True):
            row, rank = divmod(at, size)
            # Of each image all units are kept: `_order` compares a unit's own images with those of others.
            activations[row, :, rank] = each.max((1, 2))
            mask = masks(int(order[at])) if masks and thresholds is not None else None
            if mask is not None and thresholds is not None:
                lit = bright_region(
                    each[row], thresholds[units[row]], mask.shape[::-1], visible_part(model, image.size)
                )
                overlaps.append(float((lit & mask).sum() / max(1, (lit | mask).sum())))
    return activations, overlaps


def _order(activations: NDArray[np.float64]) -> float:
    """Return the mean AUC of a unit's activations on its own images against those on others'; NaN with a single
    unit."""
    areas = []
    for unit in range(len(activations)):
        own, others = activations[unit, unit], np.delete(activations[:, unit], unit, 0).ravel()
        if others.size:
            # NaN, as of a model that overflows, wins no pair
            own, others = np.where(np.isnan(own), -np.inf, own), np.where(np.isnan(others), np.inf, others)
            areas.append(area_under_curve(own, others))
    return float(np.mean(areas)) if areas else float("nan")
