"""Running statistics of many units over a stream of activation maps; memory does not grow with the stream.

Knows only tensors: no dataset, no file. Counts on the device of the maps, CPU or GPU. Used by `indexing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

State = Mapping[str, "NDArray[Any]"]

BINS = 2048
"""Bins for the spatial activations of a unit."""
IMAGE_BINS = 64
"""Bins for its activations on whole images."""
AT_ONCE = 1 << 20
"""Values counted at a time, to bound memory."""
SAMPLED = 512
"""Images, evenly taken, whose activations are all kept to compare units. They take 2 kB a unit."""
FINEST = 2.0**-24
"""Activations closer than this are treated as equal."""
_FARTHEST = 2.0**52  # bins between 0 and a value, so that bin numbers are exact
_GROWTH = 1.2  # share of the stream after which the floor is looked up again


class RunningHistogram:
    """Counts of values, `bins` for each unit, from which one quantile is read.

    Bin edges are multiples of a power of two, `width`, so the numbers of bins are exact.

    1. When a unit's values outgrow its bins, the width doubles and neighbours merge, so no count is lost.
    2. If K values will lie at or above the quantile in the end, the K-th largest seen so far is a lower bound of it.
    3. Its bin is the floor: bins above are complete, and values in it or below need no counting.
    """

    def __init__(self, units: int, bins: int = BINS, share: float = 0.0, expected: int = 0) -> None:
        """`share` of the values lie at or below the quantile; `expected` is their maximum number, 0 if unknown."""
        import torch

        self.bins = bins
        self.share = share
        self.expected = expected
        self.seen = 0
        self.counts = torch.zeros((units, bins), dtype=torch.int64)
        self.width = np.full(units, FINEST)
        self.low = np.full(units, np.inf)  # of all values counted
        self.high = np.full(units, -np.inf)
        self.base = np.zeros(units, dtype=np.int64)  # the first bin begins at base * width
        self.floor = np.full(units, -np.inf)  # where the floor begins
        self._look_again = 0.0

    def add(self, maps: torch.Tensor, highest: NDArray[Any]) -> None:
        """Count the values of maps (batch, units, n), all finite; `highest` is the maximum of each unit.

        Raises FloatingPointError if one is not.
        """
        # Once every unit has a floor, lower values are not counted.
        if not np.isfinite(self.floor).all():
            self.low = np.minimum(self.low, maps.amin((0, 2)).numpy(force=True))
        self.high = np.maximum(self.high, highest)
        if not np.isfinite(self.high - self.low).all():
            raise FloatingPointError
        self.counts = self.counts.to(maps.device)
        self._widen()
        step = max(1, AT_ONCE // maps[0].numel())
        bins_of = _bins_on_cpu if maps.device.type == "cpu" else _bins_on_gpu
        # Multiplied instead of divided: exact for powers of two, and faster.
        scale, offset = (1 / self.width).astype(np.float32), np.arange(len(self.width)) * self.bins - self.base
        for start in range(0, len(maps), step):
            part = maps[start : start + step]
            # The first edge above the floor's bin: only complete bins are counted.
            edges = (np.floor(self.floor / self.width) + 1) * self.width
            bins = bins_of(part, _float32_below(edges), scale, offset)
            self.counts.view(-1).index_add_(0, bins, self.counts.new_ones(1).expand(len(bins)))
            self.seen += part.shape[0] * part.shape[2]
            # One more than needed, in case rounding ever separates the two.
            wanted = self._wanted(self.expected) + 1
            # Looking up the floor reads all counts, so it is done less and less often.
            if self.expected and self.seen >= max(wanted, self._look_again):
                self.floor = np.maximum(self.floor, self._reach(wanted))
                self._look_again = self.seen * _GROWTH

    def quantile(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return for each unit a lower bound of the quantile, and the bound's error.

        The quantile is the least value with at least `share` of all values at or below it. The true one is not below
        the first result, and above it by less than the second: 1/1023 of the unit's range, or 2**-24 if that is more.
        """
        reach = np.maximum(self._reach(self._wanted(self.seen)), self.floor)
        return np.maximum(reach, self.low), self.width

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the whole state as arrays."""
        own = {name: getattr(self, name) for name in _STATE}
        return own | {"seen": np.array(self.seen), "counts": self.counts.numpy(force=True)}

    def restore(self, state: State) -> None:
        """Continue from a state. Raises KeyError, ValueError or RuntimeError if it is not one of this many units."""
        import torch

        for name in _STATE:
            # Copied into the existing arrays, so that another number of units raises.
            getattr(self, name)[:] = state[name]
        self.counts.copy_(torch.from_numpy(state["counts"]))
        self.seen = int(state["seen"])

    def _wanted(self, seen: int) -> int:
        """Return how many of this many values lie at or above the quantile, including it."""
        # At least one value lies at or below the quantile.
        return int(seen - max(np.ceil(self.share * seen), 1) + 1)

    def _reach(self, wanted: int) -> NDArray[np.float64]:
        """Return the lower edge of the highest bin at or above which this many values were counted; -inf if there is
        none.
        """
        # From the top: the highest bin comes first.
        downwards = self.counts.numpy(force=True)[:, ::-1].cumsum(1)
        bins = self.bins - 1 - (downwards >= wanted).argmax(1)
        return np.where(downwards[:, -1] >= wanted, (self.base + bins) * self.width, -np.inf)

    def _widen(self) -> None:
        """Make room for `low` to `high` where they lie outside the bins."""
        first, last = np.floor(self.low / self.width), np.floor(self.high / self.width)
        units = np.flatnonzero((first < self.base) | (last >= self.base + self.bins))
        if not len(units):
            return
        import torch

        low, high, width = self.low[units], self.high[units], self.width[units]
        narrow = np.ones(len(units), dtype=bool)
        while narrow.any():  # doubled until everything from low to high fits
            narrow = np.floor(high / width) - np.floor(low / width) >= self.bins
            # Beyond this, bin numbers would not be exact in float64.
            narrow |= np.maximum(-low, high) / width > _FARTHEST
            width = np.where(narrow, width * 2, width)
        base = np.floor(low / width).astype(np.int64)
        # Powers of two, so the logarithm is a whole number; a shift of 64 is undefined.
        shift = np.minimum(np.log2(width / self.width[units]), 63).astype(np.int64)
        counts = self.counts.numpy(force=True)
        before = counts[units]
        rows, full = np.nonzero(before)
        # Neighbours merge by shifting their bin numbers.
        bins = ((self.base[units][rows] + full) >> shift[rows]) - base[rows]
        after = np.zeros_like(before)
        np.add.at(after.reshape(-1), rows * self.bins + bins, before[rows, full])
        counts[units] = after
        self.counts = torch.from_numpy(counts).to(self.counts.device)
        self.width[units], self.base[units] = width, base


_STATE = ("width", "low", "high", "base", "floor")


class TopActivations:
    """The `size` highest activations of each unit and where they were seen; of equals, the earlier stays."""

    def __init__(self, units: int, size: int) -> None:
        self.size = size
        self.activations = np.zeros((0, units), dtype=np.float32)  # (size, units), best first
        self.positions = np.zeros((0, units), dtype=np.int64)

    def add(self, activations: NDArray[np.float32], positions: NDArray[np.int64]) -> None:
        """Add activations (batch, units) of the images at these positions (batch,), in ascending order."""
        # Until the table is full, every unit takes all.
        if len(self.activations) < self.size:
            self.activations, self.positions = self._merge(activations, positions, slice(None))
            return
        # Most batches improve few units, so only these are sorted.
        better = np.flatnonzero(activations.max(0) > self.activations[-1])
        self.activations[:, better], self.positions[:, better] = self._merge(activations, positions, better)

    def _merge(
        self, activations: NDArray[np.float32], positions: NDArray[np.int64], units: slice | NDArray[np.intp]
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Merge the new images into the best of these units."""
        found = np.concatenate([self.activations[:, units], activations[:, units]])
        known = self.positions[:, units]
        places = np.concatenate([known, np.broadcast_to(positions[:, None], (len(positions), known.shape[1]))])
        # Stable, so that of equal activations the earlier image stays.
        order = np.argsort(-found, axis=0, kind="stable")[: self.size]
        return np.take_along_axis(found, order, 0), np.take_along_axis(places, order, 0)


class RunningStats:
    """All that the index keeps of one layer. `expected` is the maximum number of images."""

    def __init__(self, units: int, best: int, share: float, expected: int) -> None:
        self.units = units
        self.expected = expected
        self.images = 0
        self.best = TopActivations(units, best)
        self.spatial = RunningHistogram(units, share=share)
        self.of_images = RunningHistogram(units, IMAGE_BINS)
        # In float64: float32 would lose digits over a million images.
        self.total = np.zeros(units)
        self.active = np.zeros(units, dtype=np.int64)
        self.lowest = np.full(units, np.inf)
        self.every = sample_step(expected)
        self.sample = np.full((-(-expected // self.every), units), -np.inf, dtype=np.float32)

    def add(self, maps: torch.Tensor, positions: NDArray[np.int64], shown: NDArray[np.bool_] | None = None) -> None:
        """Add the maps (batch, units, height, width) of the images at these positions, in ascending order.

        `shown` (batch,) are those that may be exemplars; None for all. Raises FloatingPointError if a value is not
        finite, ValueError if there are other units or places than before.
        """
        maps = maps.detach().flatten(2)
        # All maps have the same size, so the maximum number of values is known
        units, size = maps.shape[1:]
        if units != self.units:
            raise ValueError(f"maps of {units} units, not {self.units}, came")
        # Without this, the maximum number of values would be wrong, and the floor with it.
        if self.images and self.spatial.seen != self.images * size:
            raise ValueError(f"maps of {size} places came after maps of {self.spatial.seen // self.images}")
        self.spatial.expected = self.expected * size
        peaks = maps.amax(2)  # (batch, units)
        activations: NDArray[np.float32] = peaks.numpy(force=True)
        if not np.isfinite(activations).all():
            raise FloatingPointError
        highest = activations.max(0)
        if shown is None or shown.any():
            self.best.add(*((activations, positions) if shown is None else (activations[shown], positions[shown])))
        self.spatial.add(maps, highest)
        self.of_images.add(peaks[:, :, None], highest)
        self.images += len(activations)
        self.total += activations.sum(0, dtype=np.float64)
        self.active += (activations > 0).sum(0)
        self.lowest = np.minimum(self.lowest, activations.min(0))
        # Evenly spaced positions, so that the sample does not depend on batches or order.
        sampled = positions % self.every == 0
        self.sample[positions[sampled] // self.every] = activations[sampled]

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the whole state as arrays."""
        own = {name: getattr(self, name) for name in ("total", "active", "lowest", "sample")}
        best: State = {"activations": self.best.activations, "positions": self.best.positions}
        parts = {"best": best, "spatial": self.spatial.state(), "of_images": self.of_images.state()}
        named = {f"{part}.{name}": value for part, state in parts.items() for name, value in state.items()}
        return own | named | {"images": np.array(self.images), "expected": np.array(self.spatial.expected)}

    def restore(self, state: State) -> None:
        """Continue from a state. Raises KeyError, ValueError or RuntimeError if it is not one of this many units."""
        for name in ("total", "active", "lowest", "sample"):
            getattr(self, name)[:] = state[name]
        self.best.activations = np.array(state["best.activations"])
        self.best.positions = np.array(state["best.positions"])
        for part in ("spatial", "of_images"):
            getattr(self, part).restore({name: state[f"{part}.{name}"] for name in (*_STATE, "seen", "counts")})
        self.images, self.spatial.expected = int(state["images"]), int(state["expected"])


def sample_step(images: int) -> int:
    """Return the distance between sampled images, for a dataset of this many images."""
    return max(1, -(-images // SAMPLED))


def _bins_on_cpu(
    maps: torch.Tensor, edges: NDArray[np.float32], scale: NDArray[np.float32], offset: NDArray[np.int64]
) -> torch.Tensor:
    """Return the bin number of each value of maps (batch, units, n) that reaches its unit's edge.

    That is value * scale, rounded down, + offset; scale is a power of two, so it is exact in float32.
    """
    import torch

    values = maps.numpy()
    batch, units, size = values.shape
    reaching = np.flatnonzero(values >= edges[:, None])
    rows = np.diff(np.searchsorted(reaching, np.arange(batch * units + 1) * size))  # number in each map

    def of_each(of_units: NDArray[Any]) -> NDArray[Any]:
        return np.repeat(np.broadcast_to(of_units, (batch, units)).reshape(-1), rows)

    found = np.floor(values.reshape(-1).take(reaching) * of_each(scale)).astype(np.int64)
    return torch.from_numpy(found + of_each(offset))


def _bins_on_gpu(
    maps: torch.Tensor, edges: NDArray[np.float32], scale: NDArray[np.float32], offset: NDArray[np.int64]
) -> torch.Tensor:
    """Return the same on the GPU."""
    import torch

    # What is fast on a GPU is slow on the CPU, and vice versa.
    at = (maps >= maps.new_tensor(edges)[:, None]).flatten().nonzero()[:, 0]
    unit = at // maps.shape[2] % maps.shape[1]
    found = (maps.flatten()[at] * maps.new_tensor(scale)[unit]).floor_().long()
    return found + torch.from_numpy(offset).to(maps.device)[unit]


def _float32_below(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the greatest float32 not above each value."""
    near = values.astype(np.float32)
    return np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near)
