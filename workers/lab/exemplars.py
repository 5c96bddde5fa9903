"""The exemplar index: statistics of every unit of a layer over a dataset. Computed in one pass, saved, loaded next
Exemplars come from the split "exemplars" alone; statistics such as the mean cover all images. Files lie in
`<state>/index/<model>-<revision>/<dataset>-<revision>/<layer>.npz`, those of logits in `<layer>.<scale>.npz`. Made by
`laboratory`; systems read it.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workers.errors import MissingPart
from workers.files import atomic_write, hold_lock
from workers.lab.comparison import compare_exemplars
from workers.lab.index_files import (
    LayerStatistics,
    SkippedImages,
    UnitStatistics,
    empty_sample,
    read_published_statistics,
    replace_exemplars,
    report_disk_errors,
    summarize_stats,
)
from workers.lab.indexing import IndexingRun, describe_layers, stamp_index
from workers.protocols import (
    Dataset,
    LabSettings,
    LayerInfo,
    Picture,
    Progress,
    PublishedLayer,
    VisionModel,
    check_layers,
    no_progress,
)

_MAX_NAME_BYTES = 100  # maximum characters of a file name


class ExemplarIndex:
    """The index of one model over one dataset. Safe for threads."""

    def __init__(self, settings: LabSettings, model: VisionModel, dataset: Dataset) -> None:
        self._settings = settings
        self._model = model
        self._dataset = dataset
        self._layers: dict[str, LayerStatistics] = {}

    @cached_property
    def folder(self) -> Path:
        """The folder of its files."""
        names = (f"{each.name}-{each.revision}" for each in (self._model, self._dataset))
        return self._settings.state.joinpath("index", *(file_name(name) for name in names))

    def unit(self, layer: str, unit: int, progress: Progress = no_progress) -> UnitStatistics:
        """Return the record of a unit; computes the index of its layer if there is none yet."""
        return self.layer(layer, progress).unit(unit)

    def layer(self, layer: str, progress: Progress = no_progress) -> LayerStatistics:
        """Return the statistics of a layer's units. Raises Cancelled if `progress` does.

        Raises Cancelled if `progress` does.
        """
        if layer not in self._layers:
            # Looking at images is what costs, and layers of concepts or of a circuit share that, so all are indexed at
            # once.
            # Only layers whose work is shared: those of a network are indexed when they are asked for.
            sharing = [info.name for info in self._model.layers() if info.kind in ("concept", "circuit")]
            self.prepare(sharing if layer in sharing else [layer], progress)
        return self._layers[layer]

    def picture(self, position: int) -> Picture:
        """Return the dataset's image at a position; one published for other weights carries a remark."""
        layer_of: Callable[[int], str] | None = getattr(self._dataset, "layer_of", None)
        picture, note = self._dataset[position], self.note(layer_of(position)) if layer_of else ""
        return replace(picture, note=note) if note else picture

    def note(self, layer: str) -> str:
        """Return what to know of a layer's exemplars wherever they are shown; "" if nothing."""
        return self._notes().get(layer, "")

    def known(self, layers: Sequence[str]) -> dict[str, LayerStatistics]:
        """Return the layers that have been indexed; computes nothing. Raises UnknownName."""
        self._missing(layers)
        return {layer: self._layers[layer] for layer in layers if layer in self._layers}

    def skipped(self) -> SkippedImages:
        """Return the images that were left out when a layer was indexed; none if no layer has been yet."""
        try:
            return SkippedImages.from_json((self.folder / "skipped.json").read_text("utf-8"))
        # A damaged list must not keep the index from being used.
        except (OSError, KeyError, TypeError, ValueError):
            return SkippedImages()

    def prepare(self, layers: Sequence[str], progress: Progress = no_progress, *, insist: bool = False) -> None:
        """Load the index of these layers, or compute it in one pass over the dataset.

        Published exemplars of other weights than the model's are refused; if the caller insists, they are used and
        marked. Raises Cancelled, UnknownName; MissingPart if nothing can be indexed; MachineryError if the disk is full
        or the model's values are not finite. After any failure the next call continues where it was.
        """
        if all(layer in self._layers for layer in layers):
            return
        ask_dataset(self._dataset, "list_files", progress)
        if self._missing(layers):
            what = f"Waiting for the index of {self._model.name} {describe_layers(layers)}"
            wait = partial(progress, what, 0, len(self._dataset))
            # A stack, so that errors of the disk are reported for the lock alone, not for the whole pass.
            with ExitStack() as held:
                with report_disk_errors(self.folder):
                    # Threads and processes that want the same index wait for one another, so it is computed once.
                    held.enter_context(hold_lock(self.folder / "lock", wait))
                # Again under the lock: another one may have computed it meanwhile.
                if missing := self._missing(layers):
                    self._compute(missing, progress, insist)

    def _missing(self, layers: Sequence[str]) -> list[LayerInfo]:
        """List the layers that are neither loaded nor found on disk."""
        infos = {info.name: info for info in self._model.layers()}
        check_layers(self._model.name, layers, infos)
        for layer in layers:
            if layer not in self._layers and (found := self._read(infos[layer])):
                self._layers[layer] = found
        return [infos[layer] for layer in layers if layer not in self._layers]

    def _compute(self, layers: Sequence[LayerInfo], progress: Progress, insist: bool) -> None:
        ask_dataset(self._dataset, "prepare", progress)
        for leftover in self.folder.glob("*.part"):  # of a worker that was killed
            leftover.unlink(missing_ok=True)
        # Asked before any pass: exemplars that do not fit must not cost an hour first.
        published = {info.name: found for info in layers if (found := self._published(info))}
        for info in layers:
            if found := published.get(info.name):
                self._compare(info.name, found, progress, insist)
                # With thresholds for every unit the publication replaces the pass; otherwise quantiles are measured.
                if found.thresholds is not None and len(found.thresholds) == info.units:
                    self._keep(info.name, read_published_statistics(found, found.thresholds))
        rest = [info for info in layers if info.name not in self._layers]
        if rest:
            checkpoint = self.folder / "checkpoint.npz"
            work = IndexingRun(self._settings, self._model, self._dataset, checkpoint).run(rest, progress)
            with report_disk_errors(self.folder), atomic_write(self.folder / "skipped.json") as file:
                file.write(work.skipped.to_json().encode())
            for name, stats in work.stats.items():
                measured = summarize_stats(stats)
                # Published images, measured statistics.
                self._keep(name, replace_exemplars(measured, published[name]) if name in published else measured)
            # Only now: until the last layer is saved, a stopped job resumes from it.
            checkpoint.unlink(missing_ok=True)
        what = f"Indexing {self._model.name} {describe_layers([info.name for info in layers])}"
        progress(what, len(self._dataset), len(self._dataset))

    def _published(self, info: LayerInfo) -> PublishedLayer | None:
        """Return the published exemplars of a layer, at most as many as the settings want.

        Raises MissingPart if there are none, or they do not fit the model; the last units may be missing.
        """
        ask: Callable[[str], PublishedLayer] | None = getattr(self._dataset, "published", None)
        if ask is None:
            return None
        found = ask(info.name)
        if found.activations.shape[1] > info.units:
            raise MissingPart(
                f"{self._dataset.name} has exemplars of {found.activations.shape[1]} units of {info.name}, but "
                f"{self._model.name} has {info.units} there. Take those of the same model."
            )
        most = self._settings.exemplars
        return replace(found, activations=found.activations[:most], positions=found.positions[:most])

    def _compare(self, layer: str, found: PublishedLayer, progress: Progress, insist: bool) -> None:
        """Refuse exemplars of other weights, or mark them."""
        made = compare_exemplars(found, layer, self._model, self._dataset, self._settings.batch_size, progress)
        if made is None or not made.differs:
            return
        # A caller that insisted once need not do so again.
        if not insist and not self.note(layer):
            raise MissingPart(
                f"{self._dataset.name} is of other weights than {self._model.name}: {made}. Take the model that it is "
                "of, or insist, and they are marked: manage.py datasets index … --insist"
            )
        notes = self._notes() | {layer: f"Published for other weights: {made}."}
        with report_disk_errors(self.folder), atomic_write(self.folder / "published.json") as file:
            file.write(json.dumps(notes).encode())

    def _notes(self) -> dict[str, str]:
        try:
            return dict(json.loads((self.folder / "published.json").read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return {}

    def _keep(self, layer: str, statistics: LayerStatistics) -> None:
        # Written before it is remembered: what is in memory is on disk.
        with report_disk_errors(self.folder), atomic_write(self._path(layer)) as file:
            np.savez(file, stamp=self._stamp(), **vars(statistics))
        self._layers[layer] = statistics

    def _path(self, layer: str) -> Path:
        """Return the path of a layer's file."""
        # Logits are indexed as probabilities, so their scale is part of the name.
        scale = next((info.scale for info in self._model.layers() if info.name == layer), "")
        return self.folder / f"{file_name(layer)}{f'.{scale}' if scale else ''}.npz"

    def _stamp(self) -> NDArray[np.float64]:
        # As an array: `np.savez` keeps nothing else without pickle.
        return np.array(stamp_index(self._settings, self._dataset))

    def _read(self, layer: LayerInfo) -> LayerStatistics | None:
        """Read the saved statistics; None if they are missing, damaged, or made under other settings."""
        try:
            # No pickle: a file of objects could run code.
            with self._path(layer.name).open("rb") as file, np.load(file, allow_pickle=False) as saved:
                known = {field.name: saved[field.name] for field in fields(LayerStatistics) if field.name in saved}
                # Files without a sample are older; they still serve as an index.
                found = LayerStatistics(**({"sample": empty_sample(layer.units)} | known))
                # Other settings give other figures, so such a file is computed anew.
                fits = np.array_equal(saved["stamp"], self._stamp()) and found.quantile.shape == (layer.units,)
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
            return None
        return found if fits else None


def ask_dataset(dataset: Dataset, ability: str, progress: Progress) -> None:
    """Call an optional method of the dataset, if it has it."""
    do: Callable[[Progress], None] | None = getattr(dataset, ability, None)
    if do:
        do(progress)


def file_name(text: str) -> str:
    """Return a short file or folder name of plain characters for any text."""
    name = re.sub(r"[^\w.-]", "_", text)
    if len(name.encode()) <= _MAX_NAME_BYTES:
        return name
    # The hash tells apart texts that begin alike; file systems limit names to 255 bytes.
    return f"{name[: _MAX_NAME_BYTES // 4]}-{hashlib.sha256(text.encode(errors='surrogateescape')).hexdigest()[:32]}"
