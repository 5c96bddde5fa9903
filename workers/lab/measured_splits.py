"""The held-out splits of a dataset at their natural base rate, and what every unit of a layer answers to them.

A uniform random sample of the split, or fresh images of the same world where the dataset can make some (`held_out`).
One pass for each layer; the activations are kept beside the index, so that a label's check is arithmetic. Made by
`laboratory`; used by `label_tests` and `workers.jobs.checks`.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workers.errors import MissingPart
from workers.files import atomic_write, hold_lock
from workers.lab.exemplars import ExemplarIndex, file_name
from workers.lab.index_files import report_disk_errors
from workers.lab.map_stream import MapStream
from workers.lab.splits import FEWEST, SHARES, HeldOutSplit, is_split
from workers.protocols import Dataset, LabSettings, Picture, Progress, VisionModel, check_layers, no_progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIZE = 1_000
"""Images of a split that are measured: r of 0.5 then has an interval of about 0.1."""
_SEED = 20_240


class MeasuredSplit:
    """The development or the probe split of one dataset, under one model. Safe for threads."""

    def __init__(
        self, settings: LabSettings, model: VisionModel, dataset: Dataset, index: ExemplarIndex, split: HeldOutSplit
    ) -> None:
        self._settings = settings
        self._model = model
        make: Callable[[HeldOutSplit, int], Dataset] | None = getattr(dataset, "held_out", None)
        self._is_fresh = make is not None
        self.images: Dataset = make(split, SIZE) if make else dataset
        """What positions count: fresh images, or the whole dataset."""
        self.split = split
        self._index = index
        self._layers: dict[str, tuple[NDArray[np.int64], NDArray[np.float32]]] = {}

    def activations(
        self, layer: str, progress: Progress = no_progress
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Positions of its images (n,), ascending, and what each unit of the layer answers to them (n, units).

        Raises MissingPart if the dataset holds no image back, UnknownName, and Cancelled if `progress` does.
        """
        if layer not in self._layers:
            check_layers(self._model.name, [layer], [info.name for info in self._model.layers()])
            path = self._index.folder / "splits" / self.split / f"{file_name(layer)}.npz"
            wait = partial(progress, f"Waiting for the {self.split} images of {self._model.name} {layer}", 0, SIZE)
            with report_disk_errors(self._index.folder), hold_lock(path.with_suffix(".lock"), wait):
                self._layers[layer] = self._read(path) or self._measure(layer, path, progress)
        return self._layers[layer]

    def picture(self, position: int) -> Picture:
        return self.images[position]

    def _list_candidates(self) -> tuple[list[int], int]:
        """Positions to look at, in order, and about how many of them are of the split. Raises MissingPart."""
        count = len(self.images)
        if self._is_fresh:
            return list(range(count)), count
        if hasattr(self.images, "published"):
            raise MissingPart(
                f"{self.images.name} holds exemplars alone, so nothing in it has its natural frequency. Check labels "
                "on a dataset of ordinary images: the option “dataset” of the check."
            )
        if not is_split(self.images):
            raise MissingPart(
                f"{self.images.name} has {count} images, and of fewer than {FEWEST} none is held back from the "
                "exemplars. Add images, or name another dataset: the option “dataset” of the check."
            )
        order = np.random.default_rng(_SEED).permutation(count)
        return order.tolist(), min(SIZE, round(count * SHARES[self.split]))

    def _measure(self, layer: str, path: Path, progress: Progress) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        candidates, expected = self._list_candidates()
        what = f"Measuring {self._model.name} {layer} on {self.split} images"
        kept: list[NDArray[np.int64]] = []
        found: list[NDArray[np.float32]] = []
        done = 0

        def report() -> None:
            progress(what, min(done, expected), expected)

        stream = MapStream(self._settings, self._model, self.images, only=None if self._is_fresh else self.split)
        with closing(stream.batches([layer], candidates, report)) as batches:
            report()
            for seen in batches:
                if len(seen.positions):
                    kept.append(seen.positions)
                    found.append(seen.maps[layer].amax((2, 3)).numpy(force=True).astype(np.float32))
                    done += len(seen.positions)
                if done >= SIZE:
                    break
                report()
        if not kept:
            raise MissingPart(f"No image of {self.images.name} can be read, so no label can be checked on it.")
        positions, values = np.concatenate(kept)[:SIZE], np.concatenate(found)[:SIZE]
        order = np.argsort(positions)
        positions, values = positions[order], values[order]
        with atomic_write(path) as file:
            np.savez(file, positions=positions, activations=values, revision=np.array(self.images.revision))
        progress(what, expected, expected)
        return positions, values

    def _read(self, path: Path) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as saved:
                if str(saved["revision"]) == self.images.revision:
                    return saved["positions"], saved["activations"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            pass
        return None
