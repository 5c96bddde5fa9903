"""The records of an index: statistics of a layer's units, and the images that were left out.

Plain data, and its file format. Made by `indexing` and `exemplars`, read by systems and `jobs`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workers.errors import MachineryError
from workers.lab.running_stats import IMAGE_BINS, RunningStats
from workers.protocols import PublishedLayer
from workers.record.systems import OrdinaryActivations

QUANTILES = (0.5, 0.9, 0.99)
"""Quantiles of ordinary images, with which an activation is compared."""
NOTED = 1_000
"""Problems kept in full; the rest are only counted."""


@dataclass(frozen=True)
class UnitStatistics:
    """Statistics of one unit over the dataset. An image's activation is the spatial maximum of the unit's map on it."""

    activations: tuple[float, ...]
    """Highest activations, best first; only those above the lowest, so a constant unit has none."""
    positions: tuple[int, ...]
    """Their positions in the dataset; of equal activations the lower position comes first."""
    quantile: float
    """Quantile of all spatial activations, as `running_stats.Histogram.quantile` gives it."""
    quantile_error: float
    mean: float
    maximum: float
    active: float
    """Share of images with an activation above 0."""
    images: int
    """Number of images looked at. 0 for published exemplars: mean, share and counts are then unknown."""
    counts: tuple[int, ...]
    """Images by activation: the first bin begins at `start`, each is `width` wide. Empty last bins are left out."""
    start: float
    width: float
    ordinary: OrdinaryActivations | None = None
    """Quantiles of ordinary images, evenly taken from the dataset; None if no sample was kept."""


@dataclass(frozen=True)
class LayerStatistics:
    """The same for all units of a layer, as it is saved: arrays (units,).

    Exemplars are (size, units), counts (units, bins), `images` is a single number. NaN stands for unknown values.
    `sample` (images, units) is used to compare units: the activations on images evenly taken from the dataset, -inf
    where an image could not be read. It has no rows in older files.
    """

    activations: NDArray[np.float32]
    positions: NDArray[np.int64]
    quantile: NDArray[np.float64]
    quantile_error: NDArray[np.float64]
    mean: NDArray[np.float64]
    maximum: NDArray[np.float64]
    lowest: NDArray[np.float64]
    active: NDArray[np.float64]
    images: NDArray[np.int64]
    counts: NDArray[np.int64]
    start: NDArray[np.float64]
    width: NDArray[np.float64]
    sample: NDArray[np.float32]

    @property
    def kept(self) -> NDArray[np.bool_]:
        """True for the exemplars (size, units) that count; none for a unit that never activates."""
        # A unit that never activates has equal zeros everywhere, which are no exemplars.
        return (self.activations > self.lowest) & (self.maximum != 0)

    def dead(self) -> list[int]:
        """List the units that no image activates."""
        return [int(unit) for unit in np.flatnonzero(~self.kept.any(0))]

    def unit(self, unit: int) -> UnitStatistics:
        """Return the record of one unit; without exemplars if it never activates."""
        kept = self.kept[:, unit]
        sampled = self.sample[:, unit]
        # -inf stands for images that could not be read.
        read = sampled[np.isfinite(sampled)]
        return UnitStatistics(
            tuple(self.activations[kept, unit].tolist()),
            tuple(self.positions[kept, unit].tolist()),
            float(self.quantile[unit]),
            float(self.quantile_error[unit]),
            float(self.mean[unit]),
            float(self.maximum[unit]),
            float(self.active[unit]),
            int(self.images),
            tuple(np.trim_zeros(self.counts[unit], "b").tolist()),
            float(self.start[unit]),
            float(self.width[unit]),
            OrdinaryActivations(len(read), *np.quantile(read, QUANTILES).tolist()) if len(read) else None,
        )


@dataclass(frozen=True)
class SkippedImage:
    """An image that was left out."""

    position: int
    file: str
    reason: str


@dataclass
class SkippedImages:
    """The images of a dataset that were left out."""

    count: int = 0
    first: list[SkippedImage] = field(default_factory=list)
    """At most `NOTED` of them."""

    def add(self, problem: SkippedImage) -> None:
        self.count += 1
        if len(self.first) < NOTED:
            self.first.append(problem)

    def to_json(self) -> str:
        return json.dumps({"count": self.count, "first": [astuple(each) for each in self.first]})

    @classmethod
    def from_json(cls, text: str) -> SkippedImages:
        """Raise KeyError, TypeError or ValueError for invalid data."""
        found = json.loads(text)
        return cls(int(found["count"]), [SkippedImage(*each) for each in found["first"]])


def summarize_stats(stats: RunningStats) -> LayerStatistics:
    quantile, error = stats.spatial.quantile()
    best, of_images = stats.best, stats.of_images
    return LayerStatistics(
        best.activations,
        best.positions,
        quantile,
        error,
        stats.total / stats.images,
        of_images.high,
        stats.lowest,
        stats.active / stats.images,
        np.array(stats.images),
        of_images.counts.numpy(force=True),
        of_images.base * of_images.width,
        of_images.width,
        stats.sample,
    )


def read_published_statistics(found: PublishedLayer, thresholds: NDArray[np.float64]) -> LayerStatistics:
    """Build the statistics from a publication; the rest is unknown."""
    activations, positions = _exemplar_arrays(found)
    units = len(thresholds)
    unknown = np.full(units, np.nan)
    return LayerStatistics(
        activations,
        positions,
        thresholds,
        unknown,
        unknown,
        activations[0].astype(np.float64),
        np.full(units, -np.inf),
        unknown,
        np.array(0),
        np.zeros((units, IMAGE_BINS), dtype=np.int64),
        unknown,
        unknown,
        empty_sample(units),
    )


def replace_exemplars(measured: LayerStatistics, found: PublishedLayer) -> LayerStatistics:
    """Return the statistics with the published exemplars, and thresholds, of the first units."""
    size, units = found.activations.shape
    activations, positions = measured.activations.copy(), measured.positions.copy()
    activations[:, :units], positions[:, :units] = -np.inf, 0
    size = min(size, len(activations))
    activations[:size, :units], positions[:size, :units] = (each[:size] for each in _exemplar_arrays(found))
    quantile = measured.quantile.copy()
    if found.thresholds is not None:
        quantile[:units] = found.thresholds
    return replace(measured, activations=activations, positions=positions, quantile=quantile)


def empty_sample(units: int) -> NDArray[np.float32]:
    return np.zeros((0, units), dtype=np.float32)


def _exemplar_arrays(found: PublishedLayer) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    return found.activations.astype(np.float32), found.positions.astype(np.int64)


@contextmanager
def report_disk_errors(folder: Path) -> Iterator[None]:
    """Turn an OSError into a MachineryError: the folder cannot be written to, or the disk is full."""
    try:
        yield
    except OSError as error:
        raise MachineryError(
            f"{folder} cannot be written to ({error.strerror}). Make room there, or let MAIA_STATE name another "
            "folder; then ask again: what was saved before is kept, and the work goes on from there."
        ) from error
