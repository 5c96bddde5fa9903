"""The held-out splits of a dataset at their natural base rate, with the activations of every unit of a layer.

Each is a uniform random sample of the split, or fresh images of the same world if the dataset can make some
(`held_out`). Made by `laboratory`; used by `label_tests` and `workers.jobs.label_checks`.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workers.errors import MissingPart
from workers.files import atomic_write, hold_lock
from workers.lab.exemplars import ExemplarIndex, file_name
from workers.lab.index_files import report_disk_errors
from workers.lab.map_stream import MapStream, SeenBatch
from workers.lab.splits import MIN_SPLIT_IMAGES, SHARES, HeldOutSplit, is_split
from workers.protocols import Dataset, LabSettings, Picture, Progress, VisionModel, check_layers, no_progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

PILOT = 1_000
"""Images of a split on which every label is tried first."""
# Fixed, so that every label of every model is checked on the same images.
_SEED = 20_240


@dataclass(frozen=True)
class _Measured:
    """The measured images of a split, in the order in which they are drawn."""

    positions: NDArray[np.int64]
    """(n,)."""
    values: NDArray[np.float32]
    """The activation of each unit of the layer on them, (n, units)."""
    looked: int = 0
    """Candidates looked at so far: each is measured, of another split, or unreadable."""


_NOTHING = _Measured(np.zeros(0, np.int64), np.zeros((0, 0), np.float32))


class MeasuredSplit:
    """The development or the probe split of one dataset, under one model. Safe for threads."""

    def __init__(
        self, settings: LabSettings, model: VisionModel, dataset: Dataset, index: ExemplarIndex, split: HeldOutSplit
    ) -> None:
        self._settings = settings
        self._model = model
        make: Callable[[HeldOutSplit], Dataset] | None = getattr(dataset, "held_out", None)
        self._is_fresh = make is not None
        self.images: Dataset = make(split) if make else dataset
        """What positions refer to: fresh images, or the whole dataset."""
        self.split = split
        self._index = index
        self._layers: dict[str, _Measured] = {}

    def activations(
        self, layer: str, count: int = PILOT, progress: Progress = no_progress
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the positions of its first `count` images in random order, (n,), and each unit's activation on them,
        (n, units).

        Fewer if there are no more. Raises MissingPart if the dataset holds no image back, UnknownName, and Cancelled if
        `progress` does.
        """
        known = self._layers.get(layer)
        if known is None or not self._is_enough(known, count):
            check_layers(self._model.name, [layer], [info.name for info in self._model.layers()])
            path = self._index.folder / "splits" / self.split / f"{file_name(layer)}.npz"
            wait = partial(progress, f"Waiting for the {self.split} images of {self._model.name} {layer}", 0, count)
            with report_disk_errors(self._index.folder), hold_lock(path.with_suffix(".lock"), wait):
                known = self._layers[layer] = self._measure(layer, path, count, progress)
        # The images of a smaller count are the first of a larger one, so a sample can grow.
        return known.positions[:count], known.values[:count]

    def picture(self, position: int) -> Picture:
        return self.images[position]

    def _is_enough(self, known: _Measured, count: int) -> bool:
        # Also enough if there are no more.
        return len(known.positions) >= count or (len(known.positions) > 0 and known.looked >= len(self.images))

    def _list_candidates(self) -> tuple[list[int], float]:
        """Return the positions to look at, in order, and the share of them in the split. Raises MissingPart."""
        count = len(self.images)
        if self._is_fresh:
            # Fresh images are independent already, so their order does not matter.
            return list(range(count)), 1.0
        # Exemplars alone are the brightest images, not a sample.
        if hasattr(self.images, "published"):
            raise MissingPart(
                f"{self.images.name} holds exemplars alone, so nothing in it has its natural frequency. Check labels "
                "on a dataset of ordinary images: the option “dataset” of the check."
            )
        if not is_split(self.images):
            raise MissingPart(
                f"{self.images.name} has {count} images, and of fewer than {MIN_SPLIT_IMAGES} none is held back from "
                "the exemplars. Add images, or name another dataset: the option “dataset” of the check."
            )
        # Always in the same order, so that a later call continues the sample.
        return np.random.default_rng(_SEED).permutation(count).tolist(), SHARES[self.split]

    def _measure(self, layer: str, path: Path, count: int, progress: Progress) -> _Measured:
        """Return what the file holds, extended until it is enough."""
        candidates, share = self._list_candidates()
        known = self._read(path)
        if self._is_enough(known, count):
            return known
        what, parts = f"Measuring {self._model.name} {layer} on {self.split} images", [known]
        # An estimate: how many belong to the split is known only when they were read.
        expected = min(count, round(len(candidates) * share))

        def report() -> None:
            progress(what, min(sum(len(each.positions) for each in parts), expected), expected)

        stream = MapStream(self._settings, self._model, self.images, only=None if self._is_fresh else self.split)
        try:
            with closing(stream.batches([layer], candidates[known.looked :], report)) as batches:
                report()
                for seen in batches:
                    parts.append(_read_maxima(seen, layer))
                    if sum(len(each.positions) for each in parts) >= count:
                        break
                    report()
        # Also after a stop: what was measured is kept.
        finally:
            known = _join(parts)
            self._write(path, known)
        if not len(known.positions):
            raise MissingPart(f"No image of {self.images.name} can be read, so no label can be checked on it.")
        progress(what, expected, expected)
        return known

    def _write(self, path: Path, known: _Measured) -> None:
        revision = np.array(self.images.revision)
        # Kept beside the index, so that checking another label is arithmetic.
        with atomic_write(path) as file:
            looked = np.array(known.looked)
            np.savez(file, positions=known.positions, values=known.values, looked=looked, revision=revision)

    def _read(self, path: Path) -> _Measured:
        """Read what was measured before; nothing if it is of other images or unreadable."""
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as saved:
                # Images of another revision are other images.
                if str(saved["revision"]) == self.images.revision:
                    return _Measured(saved["positions"], saved["values"], int(saved["looked"]))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            pass
        return _NOTHING


def _read_maxima(seen: SeenBatch, layer: str) -> _Measured:
    """Return the activation of each unit on each image of a batch: the maximum of its map."""
    if not len(seen.positions):
        # Looked at all the same: the next call must not look at these again.
        return replace(_NOTHING, looked=len(seen.batch))
    values = seen.maps[layer].amax((2, 3)).numpy(force=True).astype(np.float32)
    return _Measured(seen.positions, values, len(seen.batch))


def _join(parts: Sequence[_Measured]) -> _Measured:
    """Concatenate two measurements."""
    some = [each for each in parts if len(each.positions)] or [_NOTHING]
    positions, values = (
        np.concatenate([each.positions for each in some]),
        np.concatenate([each.values for each in some]),
    )
    return _Measured(positions, values, sum(each.looked for each in parts))
