"""An image dataset saved by the library `datasets` (`save_to_disk`): "saved:PATH", "saved:PATH#SPLIT", or, where there
are several columns of images, "saved:PATH#SPLIT/COLUMN", of the usual split "saved:PATH#/COLUMN".

Loaded through the registry.
"""

# ruff: noqa: PTH111 - Path.expanduser raises for a user who does not exist
from __future__ import annotations

import os
import re
from io import BytesIO
from pathlib import Path
from typing import Any

import datasets  # type: ignore[import-untyped]
import pyarrow.compute

from workers.errors import BrokenImage, MissingPart, UnknownName
from workers.lab.decoding import decode_file
from workers.protocols import LabSettings, Picture

_MARKS = ("dataset_info.json", "dataset_dict.json", "state.json")


def missing(settings: LabSettings, path: str) -> str:  # noqa: ARG001 - the registry's contract
    """Say so if there is no such dataset."""
    folder, _, _ = _split_path(path)
    if any((folder / mark).is_file() for mark in _MARKS):
        return ""
    return (
        f"{str(folder)!r} is no dataset saved by the library `datasets`. Name a folder that `save_to_disk` made, "
        "or use folder:PATH for a folder of image files."
    )


def load(settings: LabSettings, path: str) -> SavedImages:
    """Load the dataset. Raises MissingPart if it is missing, damaged, without images, or of several columns without a
    name; UnknownName for a wrong split or column.
    """
    if message := missing(settings, path):
        raise MissingPart(message)
    folder, split, column = _split_path(path)
    try:
        found = datasets.load_from_disk(str(folder))
    except Exception as error:
        raise MissingPart(f"The dataset {str(folder)!r} cannot be opened ({error}). Save it again.") from error
    if isinstance(found, datasets.DatasetDict):
        # The split that exists in nearly every dataset.
        split = split or ("train" if "train" in found else next(iter(found)))
        if split not in found:
            raise UnknownName(f"{str(folder)!r} has no split {split!r}. Choose one of: {', '.join(found)}.")
        found = found[split]
    elif split:
        raise UnknownName(f"{str(folder)!r} has no splits, so {split!r} is none of them. Leave out #{split}.")
    column = _choose_column(found, column, f"{folder}#{split}")
    return SavedImages(folder.resolve().name, found, column, settings.dataset_images)


class SavedImages:
    """The dataset "saved:PATH". See `protocols.Dataset`. Safe for threads."""

    def __init__(self, name: str, table: Any, column: str, limit: int = 0) -> None:
        self.name = name
        self._column = column
        # Not decoded by the library, which would decode an image of any size.
        self._table = table.with_format(None).cast_column(column, datasets.Image(decode=False))
        self._labels = next(iter(_columns(table, datasets.ClassLabel)), "")
        self.classes: tuple[str, ...] = tuple(table.features[self._labels].names) if self._labels else ()
        """Names of the labels, if it has some."""
        self._length = min(limit or len(table), len(table))
        limited = "" if self._length == len(table) else f"-{self._length}"
        chosen = f"-{column}" if len(_columns(table, datasets.Image)) > 1 else ""
        # The fingerprint becomes part of file names.
        fingerprint = re.sub(r"[^0-9A-Za-z]", "", table._fingerprint)[:32]
        self.revision = f"{fingerprint}-{table.split or 'all'}{chosen}{limited}"

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Picture:
        """Return the image at a position, reduced as `decoding.decode_file` says. Raises BrokenImage, IndexError."""
        row = self._row(index, self._column)
        if not row or not row["bytes"]:
            raise BrokenImage(f"{self.source(index)}: the dataset holds no image there, at most the path of one.")
        try:
            return Picture(decode_file(BytesIO(row["bytes"])))
        except BrokenImage as error:
            raise BrokenImage(f"{self.source(index)}: {error}.") from error

    def count(self) -> int:
        """Count the rows that hold an image, not the path of one alone. Raises MissingPart if there are none."""
        # Read as Arrow, so that no image is decoded or even copied.
        rows = self._table.select_columns(self._column).with_format("arrow")[: self._length][self._column]
        if found := self._length - pyarrow.compute.struct_field(rows, "bytes").null_count:
            return found
        raise MissingPart(
            f"The dataset {self.name!r} has {self._length:,} rows, and none holds an image in {self._column!r}, at "
            "most the path of one. Save it with its images, or name another column."
        )

    def label(self, index: int) -> int | None:
        """Return the label, as a position in `classes`; None if it has none."""
        return self._row(index, self._labels) if self._labels else None

    def source(self, index: int) -> str:
        """Return what to call the image."""
        return f"row {index}"

    def _row(self, index: int, column: str) -> Any:
        if not 0 <= index < self._length:
            raise IndexError(f"There is no row {index}: they are numbered 0 to {self._length - 1}.")
        # Only this column is read: others may hold megabytes.
        return self._table.select_columns(column)[index][column]


def _columns(table: Any, kind: type) -> list[str]:
    """Return the columns whose feature is of a kind."""
    return [name for name, feature in table.features.items() if isinstance(feature, kind)]


def _choose_column(table: Any, column: str, path: str) -> str:
    """Return the named column of images, or the only one; `path` is what names the table."""
    there = _columns(table, datasets.Image)
    if not there:
        raise MissingPart(f"{path.rstrip('#')!r} has no column of images, only: {', '.join(table.column_names)}.")
    if column in there or (not column and len(there) == 1):
        return column or there[0]
    names = " or ".join(f"saved:{path}/{name}" for name in there)
    if column:
        raise UnknownName(f"{path.rstrip('#')!r} has no column of images {column!r}. Choose {names}.")
    raise MissingPart(f"{path.rstrip('#')!r} has several columns of images: {', '.join(there)}. Name one: {names}.")


def _split_path(path: str) -> tuple[Path, str, str]:
    """Return folder, split and column; a folder may have a # in its name."""
    folder, _, chosen = path.rpartition("#")
    if not folder or Path(os.path.expanduser(path)).is_dir():
        folder, chosen = path, ""
    split, _, column = chosen.partition("/")
    return Path(os.path.expanduser(folder)), split, column
