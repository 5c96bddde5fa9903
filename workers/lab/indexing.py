"""Compute the statistics of all units of several layers in one pass of a model over a dataset.

An interrupted pass, even a killed one, continues where it was and ends with the same figures. Images that cannot be
read are left out and noted. Used by `exemplars`.
"""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from workers.errors import Cancelled, MachineryError, MissingPart
from workers.files import atomic_write
from workers.lab.index_files import SkippedImages, report_disk_errors
from workers.lab.map_stream import MapStream, SeenBatch
from workers.lab.running_stats import RunningStats
from workers.lab.splits import SHARES, is_split
from workers.protocols import Dataset, LabSettings, LayerInfo, Progress, VisionModel

SAVE_EVERY = 30.0
"""Seconds between checkpoints; more if saving takes over a twentieth of the time."""


@dataclass
class IndexingState:
    """The progress of a pass."""

    stats: dict[str, RunningStats]
    done: int = 0
    """Number of images done, from the first."""
    skipped: SkippedImages = field(default_factory=SkippedImages)


class IndexingRun:
    """A pass under given settings; `checkpoint` is the file it is saved in."""

    def __init__(self, settings: LabSettings, model: VisionModel, dataset: Dataset, checkpoint: Path) -> None:
        self._settings = settings
        self._model = model
        self._dataset = dataset
        self._checkpoint = checkpoint
        self._stream = MapStream(settings, model, dataset)
        self._scales = {info.name: info.scale for info in model.layers()}

    def run(self, layers: Sequence[LayerInfo], progress: Progress) -> IndexingState:
        """Finish the pass over the dataset. The checkpoint is kept.

        A checkpoint with more layers is finished for all of them. Raises Cancelled; MissingPart if no image can be
        read; MachineryError if the disk is full or the model's values are not finite.
        """
        work = self._read_checkpoint(layers) or IndexingState({info.name: self._new_stats(info) for info in layers})
        what = f"Indexing {self._model.name} {describe_layers(list(work.stats))}"
        # `first` is left out of the pace: a resumed pass did not compute those images now.
        total, began, first = len(self._dataset), time.monotonic(), work.done
        save_at = began + SAVE_EVERY

        def report() -> None:
            pace = _format_pace(work.done - first, total - work.done, time.monotonic() - began)
            skipped = f"{work.skipped.count:,} skipped" if work.skipped.count else ""
            notes = ", ".join(each for each in (pace, skipped) if each)
            progress(f"{what} ({notes})" if notes else what, work.done, total)

        try:
            with closing(self._stream.batches(list(work.stats), range(first, total), report)) as batches:
                report()
                for seen in batches:
                    self._count(work, seen)
                    if (now := time.monotonic()) >= save_at:
                        self._save(work)
                        ended = time.monotonic()
                        # Saving takes long for many units, so it may use up to a twentieth of the time.
                        save_at = ended + (max(SAVE_EVERY, 20 * (ended - now)) if SAVE_EVERY else 0)
                    if work.done < total:
                        report()
        # A stop by a person keeps the work; any other end leaves the last checkpoint.
        except Cancelled:
            self._save(work)
            raise
        if work.skipped.count == total:
            reason = "".join(f" The first: {each.reason}" for each in work.skipped.first[:1])
            raise MissingPart(
                f"The dataset {self._dataset.name} has {total:,} files, and none is an image that can be read.{reason} "
                "Put images there, or choose another dataset."
            )
        self._save(work)
        return work

    def _new_stats(self, info: LayerInfo) -> RunningStats:
        return RunningStats(info.units, self._settings.exemplars, self._settings.mask_quantile, len(self._dataset))

    def _count(self, work: IndexingState, seen: SeenBatch) -> None:
        # Only the split "exemplars" may be shown; statistics cover all images.
        shown = np.array([each == "exemplars" for each in seen.splits], dtype=bool)
        for name, maps in seen.maps.items():
            try:
                work.stats[name].add(maps, seen.positions, shown)
            except FloatingPointError:
                raise self._stream.explain_not_finite(name, seen) from None
            except ValueError as error:
                raise MachineryError(f"{self._model.name} {name} cannot be indexed: {error}.") from error
        for problem in seen.problems:
            work.skipped.add(problem)
        # Of the batch, not of the images that could be read: a resumed pass must not read broken ones again.
        work.done = seen.batch[-1] + 1

    def _stamp(self) -> list[float]:
        return stamp_index(self._settings, self._dataset)

    def _save(self, work: IndexingState) -> None:
        """Write the checkpoint."""
        layers = [[name, stats.units, self._scales[name]] for name, stats in work.stats.items()]
        about = {"stamp": self._stamp(), "layers": layers, "done": work.done, "skipped": work.skipped.to_json()}
        arrays: dict[str, Any] = {}
        # Numbered: names of layers may hold characters that names of arrays cannot.
        for number, stats in enumerate(work.stats.values()):
            arrays |= {f"{number}.{name}": value for name, value in stats.state().items()}
        # Atomic: the previous checkpoint stays whole until the new one is complete.
        with report_disk_errors(self._checkpoint.parent), atomic_write(self._checkpoint) as file:
            np.savez(file, about=np.array(json.dumps(about)), **arrays)

    def _read_checkpoint(self, layers: Sequence[LayerInfo]) -> IndexingState | None:
        """Read the checkpoint; None if there is none, it is damaged, or it is of other layers or settings."""
        wanted = {info.name: info.units for info in layers}
        known = {info.name: info for info in self._model.layers()}
        try:
            with self._checkpoint.open("rb") as file, np.load(file, allow_pickle=False) as saved:
                about = json.loads(str(saved["about"]))
                units = {str(name): int(count) for name, count, _ in about["layers"]}
                scales = {str(name): str(scale) for name, _, scale in about["layers"]}
                # More layers than asked for are welcome; other scales are other figures.
                fits = wanted.items() <= units.items() and scales.items() <= self._scales.items()
                if about["stamp"] != self._stamp() or not fits:
                    return None
                work = IndexingState({name: self._new_stats(known[name]) for name in units}, int(about["done"]))
                work.skipped = SkippedImages.from_json(about["skipped"])
                for number, stats in enumerate(work.stats.values()):
                    prefix = f"{number}."
                    stats.restore({name.removeprefix(prefix): saved[name] for name in saved if name.startswith(prefix)})
                return work
        except (OSError, ValueError, KeyError, TypeError, EOFError, RuntimeError, zipfile.BadZipFile):
            return None


def stamp_index(settings: LabSettings, dataset: Dataset) -> list[float]:
    """Return what a saved index or checkpoint must agree with, besides its name."""
    # The split decides which images may be exemplars, so it is part of the stamp.
    share = SHARES["exemplars"] if is_split(dataset) else 1.0
    return [len(dataset), settings.exemplars, settings.mask_quantile, share]


def describe_layers(layers: Sequence[str]) -> str:
    """Describe the layers in a few words."""
    return ", ".join(layers) if len(layers) <= 6 else f"{len(layers)} layers"


def _format_pace(done: int, left: int, seconds: float) -> str:
    """Return rate and time left; "" in the first second."""
    if not done or seconds < 1:
        return ""
    rate = done / seconds
    shown = f"{rate:,.0f} images a second" if rate >= 1 else f"{60 * rate:,.0f} images a minute"
    minutes = round(left / rate / 60)
    wait = f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
    if left / rate < 100:
        wait = f"{left / rate:.0f} s"
    return f"{shown}, {wait} left"
