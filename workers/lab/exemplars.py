"""The exemplar index: what a data set says of every unit of a layer. Computed in one pass, saved, loaded next time.

Files lie in `<state>/index/<model>-<revision>/<data set>-<revision>/<layer>.npz`. Threads and processes that want the
same index wait for one another, so it is computed once. Masked images are not its business: a system makes them.
Made by `laboratory`; systems read it.
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workers.lab.tally import Tally
from workers.protocols import DataSet, LabSettings, LayerInfo, Picture, Progress, VisionModel, silent

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WAIT = 0.1


@dataclass(frozen=True)
class UnitRecord:
    """One unit over the data set. An image's activation is the spatial maximum of the unit's map on it."""

    activations: tuple[float, ...]
    """Highest activations, best first; only those above the lowest, so a unit that never changes has none."""
    positions: tuple[int, ...]
    """Where in the data set they are; of equal activations the lower position comes first."""
    quantile: float
    """Of all spatial activations, as `tally.Histogram.quantile` gives it."""
    quantile_error: float
    mean: float
    maximum: float
    active: float
    """Share of images with an activation above 0."""


@dataclass(frozen=True)
class LayerStatistics:
    """The same for all units of a layer, as it is saved: arrays (units,) and, for the exemplars, (size, units)."""

    activations: NDArray[np.float32]
    positions: NDArray[np.int64]
    quantile: NDArray[np.float64]
    quantile_error: NDArray[np.float64]
    mean: NDArray[np.float64]
    maximum: NDArray[np.float64]
    lowest: NDArray[np.float64]
    active: NDArray[np.float64]

    def unit(self, unit: int) -> UnitRecord:
        """The record of one unit; empty of exemplars if it never activates."""
        kept = (self.activations[:, unit] > self.lowest[unit]) & (self.maximum[unit] != 0)
        return UnitRecord(
            tuple(self.activations[kept, unit].tolist()),
            tuple(self.positions[kept, unit].tolist()),
            float(self.quantile[unit]),
            float(self.quantile_error[unit]),
            float(self.mean[unit]),
            float(self.maximum[unit]),
            float(self.active[unit]),
        )


class ExemplarIndex:
    """The index of one model over one data set. Safe for threads."""

    def __init__(self, settings: LabSettings, model: VisionModel, data_set: DataSet) -> None:
        self._settings = settings
        self._model = model
        self._data_set = data_set
        self._layers: dict[str, LayerStatistics] = {}
        self._lock = threading.Lock()
        names = (f"{each.name}-{each.revision}" for each in (model, data_set))
        self.folder = settings.state.joinpath("index", *(_file_name(name) for name in names))

    def unit(self, layer: str, unit: int, progress: Progress = silent) -> UnitRecord:
        """What is known of a unit; computes the index of its layer if there is none yet."""
        return self.layer(layer, progress).unit(unit)

    def layer(self, layer: str, progress: Progress = silent) -> LayerStatistics:
        """The statistics of a layer's units. Raises Cancelled if `progress` does."""
        if layer not in self._layers:
            self.prepare([layer], progress)
        return self._layers[layer]

    def picture(self, position: int) -> Picture:
        """The data set's image at a position."""
        with self._lock:
            return self._data_set[position]

    def prepare(self, layers: Sequence[str], progress: Progress = silent) -> None:
        """Have the index of these layers, from disk or in one pass over the data set. Raises Cancelled."""
        if self._missing(layers):
            what = f"Waiting for the index of {self._model.name} {', '.join(layers)}"
            with _alone(self.folder / "lock", lambda: progress(what, 0, len(self._data_set))):
                missing = self._missing(layers)
                if missing:
                    self._compute(missing, progress)

    def _missing(self, layers: Sequence[str]) -> list[LayerInfo]:
        """Those of the layers that are neither loaded nor, now, found on disk."""
        infos = {info.name: info for info in self._model.layers()}
        for layer in layers:
            if layer not in self._layers and (found := self._read(infos[layer])):
                self._layers[layer] = found
        return [infos[layer] for layer in layers if layer not in self._layers]

    def _compute(self, layers: Sequence[LayerInfo], progress: Progress) -> None:
        if prepare := getattr(self._data_set, "prepare", None):
            prepare(progress)
        tallies = {info.name: Tally(info.units, self._settings.exemplars) for info in layers}
        total = len(self._data_set)
        what = f"Indexing {self._model.name} {', '.join(tallies)}"
        for start in range(0, total, self._settings.batch_size):
            progress(what, start, total)
            batch = range(start, min(start + self._settings.batch_size, total))
            maps = self._model.maps([self.picture(position).image for position in batch], list(tallies))
            for name, tally in tallies.items():
                tally.add(maps[name])
        for name, tally in tallies.items():
            self._layers[name] = _statistics(tally, self._settings.mask_quantile)
            self._write(name, self._layers[name])
        progress(what, total, total)

    def _path(self, layer: str) -> Path:
        return self.folder / f"{_file_name(layer)}.npz"

    def _stamp(self) -> NDArray[np.float64]:
        """What a saved index must agree with beside its name."""
        return np.array([len(self._data_set), self._settings.exemplars, self._settings.mask_quantile])

    def _write(self, layer: str, statistics: LayerStatistics) -> None:
        part = self._path(layer).with_suffix(f".{os.getpid()}.part")
        with part.open("wb") as file:
            np.savez(file, stamp=self._stamp(), **vars(statistics))
        part.replace(self._path(layer))

    def _read(self, layer: LayerInfo) -> LayerStatistics | None:
        """The saved statistics; None if there are none, or they were made under other settings, or are damaged."""
        try:
            with self._path(layer.name).open("rb") as file, np.load(file, allow_pickle=False) as saved:
                found = LayerStatistics(*(saved[field.name] for field in fields(LayerStatistics)))
                fits = np.array_equal(saved["stamp"], self._stamp()) and found.quantile.shape == (layer.units,)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None
        return found if fits else None


def _statistics(tally: Tally, quantile: float) -> LayerStatistics:
    value, error = tally.histogram.quantile(quantile)
    best = tally.best
    maximum = best.activations[0].astype(np.float64)
    mean, active = tally.total / tally.images, tally.active / tally.images
    return LayerStatistics(best.activations, best.positions, value, error, mean, maximum, tally.lowest, active)


@contextmanager
def _alone(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock file. `waiting` is called again and again until it is ours; what it raises ends the wait.

    The lock belongs to the open file, so threads exclude one another too, and a killed process leaves none behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waiting()
                time.sleep(_WAIT)
        yield


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.-]", "_", text)
