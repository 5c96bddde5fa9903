"""The probe set: held-out images at their natural base rate, and what every unit of a layer answers to them.

A uniform random sample of a dataset, or fresh images of the same world where the dataset can make some (`held_out`).
One pass for each layer; the activations are kept beside the index, so that a label's check is arithmetic. Which images
a check leaves out, such as the exemplars of its unit, is for the caller. Used by `workers.jobs.checks`.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workers.errors import BrokenImage, MissingPart
from workers.files import atomic_write, hold_lock
from workers.lab.exemplars import ExemplarIndex, file_name
from workers.lab.index_files import report_disk_errors
from workers.protocols import (
    Dataset,
    LabSettings,
    Picture,
    Progress,
    VisionModel,
    check_layers,
    no_progress,
    probabilities,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIZE = 1_000
"""Images of a probe set: r of 0.5 then has an interval of about 0.1."""
_SEED = 20_240


class ProbeSet:
    """The probe set of one model over one dataset. Safe for threads."""

    def __init__(self, settings: LabSettings, model: VisionModel, dataset: Dataset, index: ExemplarIndex) -> None:
        self._settings = settings
        self._model = model
        make: Callable[[int], Dataset] | None = getattr(dataset, "held_out", None)
        self.is_fresh = make is not None
        """Whether its images are no images of the dataset: then none can be an exemplar."""
        self.images: Dataset = make(SIZE) if make else dataset
        self._index = index
        self._layers: dict[str, tuple[NDArray[np.int64], NDArray[np.float32]]] = {}

    def activations(
        self, layer: str, progress: Progress = no_progress
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Positions of the probe images (n,), and what each unit of the layer answers to them (n, units).

        Raises MissingPart if the dataset has no images of natural frequency, UnknownName, and Cancelled if `progress`
        does.
        """
        if layer not in self._layers:
            check_layers(self._model.name, [layer], [info.name for info in self._model.layers()])
            path = self._index.folder / "probe" / f"{file_name(layer)}.npz"
            wait = partial(progress, f"Waiting for the probe set of {self._model.name} {layer}", 0, SIZE)
            with report_disk_errors(self._index.folder), hold_lock(path.with_suffix(".lock"), wait):
                self._layers[layer] = self._read(path) or self._measure(layer, path, progress)
        return self._layers[layer]

    def picture(self, position: int) -> Picture:
        return self.images[position]

    def _sample(self) -> NDArray[np.int64]:
        if hasattr(self.images, "published"):
            raise MissingPart(
                f"{self.images.name} holds exemplars alone, so nothing in it has its natural frequency. Check labels "
                "on a dataset of ordinary images: the option “dataset” of the check."
            )
        return _draw_sample(len(self.images))

    def _measure(self, layer: str, path: Path, progress: Progress) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        scale = next(info.scale for info in self._model.layers() if info.name == layer)
        kept: list[int] = []
        found: list[NDArray[np.float32]] = []
        sample, size = self._sample(), self._settings.batch_size
        for start in range(0, len(sample), size):
            progress(f"Measuring {self._model.name} {layer} on held-out images", start, len(sample))
            read = [(int(at), picture) for at in sample[start : start + size] if (picture := self._try(int(at)))]
            if read:
                maps = self._model.maps([picture.image for _, picture in read], [layer])[layer]
                found.append(probabilities(maps, scale).amax((2, 3)).numpy(force=True).astype(np.float32))
                kept += [at for at, _ in read]
        if not kept:
            raise MissingPart(f"No image of {self.images.name} can be read, so no label can be checked on it.")
        positions, values = np.array(kept), np.concatenate(found)
        with atomic_write(path) as file:
            np.savez(file, positions=positions, activations=values, revision=np.array(self.images.revision))
        progress(f"Measuring {self._model.name} {layer} on held-out images", len(sample), len(sample))
        return positions, values

    def _try(self, position: int) -> Picture | None:
        try:
            return self.images[position]
        except BrokenImage:
            return None

    def _read(self, path: Path) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as saved:
                if str(saved["revision"]) == self.images.revision:
                    return saved["positions"], saved["activations"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            pass
        return None


def held_out_positions(dataset: Dataset) -> set[int]:
    """The images of a dataset on which labels are checked: none where it can make fresh ones for that."""
    return set() if hasattr(dataset, "held_out") else set(_draw_sample(len(dataset)).tolist())


def _draw_sample(count: int) -> NDArray[np.int64]:
    if count <= SIZE:
        return np.arange(count)
    return np.sort(np.random.default_rng(_SEED).choice(count, SIZE, replace=False))
