"""Read labels from a zip: delphi's text files, exported here or elsewhere, and datasets exported here."""

from __future__ import annotations

import re
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from experiments.core.params import clean_text
from experiments.exchange.formats.label_files import INDEX
from experiments.exchange.label_cells import UnusableLine, format_cell
from experiments.exchange.label_rows import LabelFile, LabelLine, read_placed
from experiments.exchange.safe_zip import Archive, ExchangeError, open_archive, parse_json

LABELS_MEMBER = "labels.jsonl"
"""Member of a dataset with its labels in our JSON Lines; `datasets` reads the same labels from Parquet."""
_LATENT = re.compile(r"(?P<layer>.+)_latent(?P<unit>[0-9]{1,9})", re.ASCII)
_MAX_EXPLANATION = 1 << 20
"""Maximum bytes of the file of one label."""
_MAX_LINES = 256 << 20


def open_labels(path: Path, layer: str) -> LabelFile:
    """Return the labels of a file of any format. A workbook is refused once it is read."""
    if zipfile.is_zipfile(path):
        with open_archive(path, proven=False) as archive:
            if {INDEX, LABELS_MEMBER} & archive.members.keys() or any(
                _read_name(archive, name) for name in archive.members
            ):
                return _ZippedLabels(path, layer)
    return LabelFile(path, layer)


class _ZippedLabels(LabelFile):
    """The labels of an archive. `layer` applies to all units if it is not empty."""

    def __iter__(self) -> Iterator[LabelLine]:
        with open_archive(self.path, proven=False) as archive:
            if LABELS_MEMBER in archive.members:
                yield from self._read_dataset(archive)
                return
            told = dict(self._read_index(archive)) if INDEX in archive.members else {}
            for name in archive.members:
                try:
                    if name in told or _read_name(archive, name):
                        yield self._read_file(archive, name, told.get(name))
                except UnusableLine as error:
                    self.skip(error)

    def _read_dataset(self, archive: Archive) -> Iterator[LabelLine]:
        # Unpacked to a file: the reader of labels reads files several times.
        with tempfile.NamedTemporaryFile(prefix="maia-labels-") as part:
            for chunk in archive.chunks(LABELS_MEMBER, _MAX_LINES):
                part.write(chunk)
            # LabelFile opens the file by its name
            part.flush()
            inner = LabelFile(Path(part.name), self.layer)
            yield from inner
            self.left, self.unusable, self.unusable_lines = inner.left, inner.unusable, inner.unusable_lines

    def _read_index(self, archive: Archive) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield (member, its line of the index). Labels without a unit are recorded as unusable."""
        for where, line in archive.lines(INDEX, _MAX_LINES):
            if isinstance(name := line.get("file"), str) and name:
                yield name, line
            else:
                self.skip(UnusableLine(f"{where} names no unit."))

    def _read_file(self, archive: Archive, name: str, told: Mapping[str, Any] | None) -> LabelLine:
        """Read the label of one member, which is JSON text. Raises UnusableLine."""
        try:
            label = parse_json(archive.bytes(name, _MAX_EXPLANATION), name)
        except ExchangeError as error:
            raise UnusableLine(str(error)) from None
        if not isinstance(label, str):
            raise UnusableLine(f"{name} holds no text: a label is written as JSON, in quotes.")
        if told is not None:
            cell = {part: clean_text(format_cell(told.get(part))) for part in _TOLD}
            return read_placed({**cell, "description": label}, name)
        layer, unit = _read_name(archive, name) or ("", "")
        cell = {**dict.fromkeys(_TOLD, ""), "layer": self.layer or layer, "unit": unit, "description": label}
        return read_placed(cell, name)


_TOLD = ("model", "layer", "unit", "source", "position", "scores")


def _read_name(archive: Archive, name: str) -> tuple[str, str] | None:
    """Return (layer, latent) of a file in delphi's folder of explanations; None for any other file."""
    path = PurePosixPath(archive.members[name].filename)
    found = _LATENT.fullmatch(path.stem) if path.suffix == ".txt" and path.parent.name == "explanations" else None
    return (found["layer"], found["unit"]) if found else None
