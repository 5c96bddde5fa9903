"""Find the units of a network that respond to what another one responds to, from the index of a dataset.

Similarity is Pearson's correlation of two units' activations on the same sampled images; without a sample the number of
shared exemplars. Pure arrays; called by `workers.jobs.unit_profiles`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.lab.index_files import LayerStatistics

MAX_SIMILAR = 8
MIN_IMAGES = 20
"""Minimum number of images for a meaningful correlation."""


@dataclass(frozen=True)
class SimilarUnit:
    layer: str
    unit: int
    similarity: float
    shared: int
    """Exemplars that both units have."""


@dataclass(frozen=True)
class SimilarUnits:
    """The most similar units, best first; `images` is the number of images behind the measure."""

    measure: str
    """"correlation" or "overlap"."""
    images: int
    same: list[SimilarUnit]
    others: list[SimilarUnit]
    """Similar units of other layers."""


def find_similar_units(layers: Mapping[str, LayerStatistics], layer: str, unit: int) -> SimilarUnits:
    """Return the units that are most similar to one of them: at most `MAX_SIMILAR` of its layer and of others."""
    own = layers[layer]
    # Images of the sample that could be read; 0 if the unit is constant on them, and so correlates with nothing
    # NaN and -inf are images that could not be read.
    values = own.sample[np.isfinite(own.sample[:, unit]), unit]
    images = len(values) if len(values) and values.max() > values.min() else 0
    by_sample = images >= MIN_IMAGES
    exemplars = own.positions[own.kept[:, unit], unit]
    found = []
    for name, other in layers.items():
        both = _count_shared(exemplars, other)
        # Published exemplars come without a sample.
        similarity = _correlate(own.sample[:, unit], other.sample) if by_sample else both / max(len(exemplars), 1)
        best = np.argsort(-similarity, kind="stable")[: MAX_SIMILAR + 1]  # may include the unit itself
        found += [SimilarUnit(name, int(n), float(similarity[n]), int(both[n])) for n in best if similarity[n] > 0]
    # By number where equal, so the order is the same each time.
    ordered = sorted(found, key=lambda each: (-each.similarity, each.unit))
    same = [each for each in ordered if each.layer == layer and each.unit != unit][:MAX_SIMILAR]
    others = [each for each in ordered if each.layer != layer][:MAX_SIMILAR]
    if by_sample:
        return SimilarUnits("correlation", images, same, others)
    return SimilarUnits("overlap", len(exemplars), same, others)


def _correlate(values: NDArray[np.float32], sample: NDArray[np.float32]) -> NDArray[np.float64]:
    """Correlate these values with each unit of a sample (images, units); 0 for a unit that is constant or unknown."""
    if len(sample) != len(values):  # no sample was kept
        return np.zeros(sample.shape[1])
    known = np.isfinite(values) & np.isfinite(sample).all(1)
    # In float64, since differences of large means lose digits.
    mine, others = values[known].astype(np.float64), sample[known].astype(np.float64)
    mine, others = mine - mine.mean(), others - others.mean(0)
    lengths = np.sqrt((mine**2).sum() * (others**2).sum(0))
    # A constant unit correlates with nothing; 1e-12 instead of 0 for rounding.
    return np.divide(mine @ others, lengths, out=np.zeros(len(lengths)), where=lengths > 1e-12)


def _count_shared(exemplars: NDArray[np.int64], statistics: LayerStatistics) -> NDArray[np.int64]:
    """Count how many of these exemplars each unit of a layer has too."""
    return (np.isin(statistics.positions, exemplars) & statistics.kept).sum(0)
