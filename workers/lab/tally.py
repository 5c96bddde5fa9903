"""Running statistics of many units over a stream of activation maps; memory does not grow with the stream.

Knows tensors only: no data set, no file. Used by `exemplars`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

BINS = 2048
AT_ONCE = 1 << 20
"""Values counted in one go, which bounds the memory that takes."""
FINEST = 2.0**-24
"""Activations closer than this are not told apart."""


class Histogram:
    """Counts of spatial activations, `BINS` bins for each unit, from which quantiles are read.

    Bin edges are multiples of a power of two, `width`. When a unit's values outgrow its bins, the width doubles and
    neighbours merge, so no count is ever lost and the result does not depend on the batches.
    """

    def __init__(self, units: int) -> None:
        self.counts = np.zeros((units, BINS), dtype=np.int64)
        self.width = np.full(units, FINEST)
        self.low = np.full(units, np.inf)
        self.high = np.full(units, -np.inf)
        self._base = np.zeros(units, dtype=np.int64)  # the first bin begins at base * width

    def add(self, values: torch.Tensor) -> None:
        """Count values of shape (units, n)."""
        self.low = np.minimum(self.low, _numpy(values.amin(1)))
        self.high = np.maximum(self.high, _numpy(values.amax(1)))
        for unit in np.flatnonzero(self._outgrown()).tolist():
            self._widen(unit)
        step = max(1, AT_ONCE // values.shape[1])
        for start in range(0, len(values), step):
            part = slice(start, start + step)
            self.counts[part] += _count(values[part], self.width[part], self._base[part])

    def quantile(self, share: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """For each unit a lower bound of the quantile, and the bound's error.

        The quantile is the least value with at least `share` of all values at or below it. The true one is not below
        the first result, and above it by less than the second: 1/1023 of the unit's range, or 2**-24 if that is more.
        """
        seen = self.counts.cumsum(1)
        wanted = np.maximum(np.ceil(share * seen[:, -1:]), 1)
        at = (seen >= wanted).argmax(1)
        return np.maximum((self._base + at) * self.width, self.low), self.width

    def _outgrown(self) -> NDArray[np.bool_]:
        first, last = np.floor(self.low / self.width), np.floor(self.high / self.width)
        outgrown: NDArray[np.bool_] = (first < self._base) | (last >= self._base + BINS)
        return outgrown

    def _widen(self, unit: int) -> None:
        shift, width = 0, self.width[unit]
        while np.floor(self.high[unit] / width) - np.floor(self.low[unit] / width) >= BINS:
            shift, width = shift + 1, width * 2
        full = np.flatnonzero(self.counts[unit])
        base = int(np.floor(self.low[unit] / width))
        bins = ((self._base[unit] + full) >> min(shift, 63)) - base
        counts = np.bincount(bins, self.counts[unit, full], minlength=BINS)
        self.counts[unit], self.width[unit], self._base[unit] = counts, width, base


class Best:
    """The `size` highest activations of each unit and where they were seen; of equals, the earlier stays."""

    def __init__(self, units: int, size: int) -> None:
        self.size = size
        self.activations = np.zeros((0, units), dtype=np.float32)  # (size, units), best first
        self.positions = np.zeros((0, units), dtype=np.int64)

    def add(self, activations: NDArray[np.float32], first: int) -> None:
        """Take activations (batch, units) of images at positions `first`, `first` + 1, …, in ascending order."""
        positions = np.broadcast_to(np.arange(first, first + len(activations))[:, None], activations.shape)
        activations = np.concatenate([self.activations, activations])
        positions = np.concatenate([self.positions, positions])
        order = np.argsort(-activations, axis=0, kind="stable")[: self.size]
        self.activations = np.take_along_axis(activations, order, 0)
        self.positions = np.take_along_axis(positions, order, 0)


class Tally:
    """All that the index keeps of one layer."""

    def __init__(self, units: int, best: int) -> None:
        self.images = 0
        self.histogram = Histogram(units)
        self.best = Best(units, best)
        self.total = np.zeros(units)
        self.active = np.zeros(units, dtype=np.int64)
        self.lowest = np.full(units, np.inf)

    def add(self, maps: torch.Tensor) -> None:
        """Take the maps (batch, units, height, width) of the next images."""
        activations = _numpy(maps.amax((2, 3)))  # (batch, units)
        self.best.add(activations, self.images)
        self.histogram.add(maps.transpose(0, 1).flatten(1))  # (units, batch * height * width)
        self.images += len(activations)
        self.total += activations.sum(0, dtype=np.float64)
        self.active += (activations > 0).sum(0)
        self.lowest = np.minimum(self.lowest, activations.min(0))


def _count(values: torch.Tensor, width: NDArray[Any], base: NDArray[Any]) -> NDArray[np.int64]:
    """Bin counts (units, BINS) of values (units, n) that all fit."""
    units = len(values)
    # Powers of two divide without rounding, so the bins are exact in float32.
    bins = (values / values.new_tensor(width)[:, None]).floor_().long()
    bins += bins.new_tensor(np.arange(units) * BINS - base)[:, None]
    counts: NDArray[np.int64] = _numpy(bins.flatten().bincount(minlength=units * BINS))
    return counts.reshape(units, BINS)


def _numpy(tensor: torch.Tensor) -> NDArray[Any]:
    array: NDArray[Any] = tensor.numpy(force=True)
    return array
