"""An image dataset saved by the library `datasets` (`save_to_disk`): "saved:PATH", or "saved:PATH#SPLIT".

Images are decoded here: the library would decode anything of any size. Loaded through the registry.
"""

# ruff: noqa: PTH111 - Path.expanduser raises for a user who does not exist
from __future__ import annotations

import os
import re
from io import BytesIO
from pathlib import Path
from typing import Any

import datasets  # type: ignore[import-untyped]

from workers.errors import BrokenImage, MissingPart, UnknownName
from workers.lab.imaging import decode_file
from workers.protocols import LabSettings, Picture

_MARKS = ("dataset_info.json", "dataset_dict.json", "state.json")


def missing(settings: LabSettings, path: str) -> str:  # noqa: ARG001 - the registry's contract
    """Says so if there is no such dataset."""
    folder, _ = _split_path(path)
    if any((folder / mark).is_file() for mark in _MARKS):
        return ""
    return (
        f"{str(folder)!r} is no dataset saved by the library `datasets`. Name a folder that `save_to_disk` made, "
        "or use folder:PATH for a folder of image files."
    )


def load(settings: LabSettings, path: str) -> SavedImages:
    """The dataset. Raises MissingPart if it is none, is damaged or has no images; UnknownName for a wrong split."""
    if message := missing(settings, path):
        raise MissingPart(message)
    folder, split = _split_path(path)
    try:
        found = datasets.load_from_disk(str(folder))
    except Exception as error:
        raise MissingPart(f"The dataset {str(folder)!r} cannot be opened ({error}). Save it again.") from error
    if isinstance(found, datasets.DatasetDict):
        split = split or ("train" if "train" in found else next(iter(found)))
        if split not in found:
            raise UnknownName(f"{str(folder)!r} has no split {split!r}. Choose one of: {', '.join(found)}.")
        found = found[split]
    elif split:
        raise UnknownName(f"{str(folder)!r} has no splits, so {split!r} is none of them. Leave out #{split}.")
    return SavedImages(folder.resolve().name, found, settings.dataset_images)


class SavedImages:
    """The dataset "saved:PATH". See `protocols.Dataset`. Safe for threads."""

    def __init__(self, name: str, table: Any, limit: int = 0) -> None:
        column = _column(table, datasets.Image)
        if column is None:
            raise MissingPart(f"The dataset {name!r} has no column of images, only: {', '.join(table.column_names)}.")
        self.name = name
        self._column = column
        self._table = table.with_format(None).cast_column(column, datasets.Image(decode=False))
        self._labels = _column(table, datasets.ClassLabel)
        self.classes: tuple[str, ...] = tuple(table.features[self._labels].names) if self._labels else ()
        """Names of the labels, if it has some."""
        self._length = min(limit or len(table), len(table))
        limited = "" if self._length == len(table) else f"-{self._length}"
        self.revision = f"{re.sub(r'[^0-9A-Za-z]', '', table._fingerprint)[:32]}-{table.split or 'all'}{limited}"

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Picture:
        """The image at a position, reduced as `imaging.decode_file` says. Raises BrokenImage, IndexError."""
        row = self._row(index, self._column)
        if not row or not row["bytes"]:
            raise BrokenImage(f"{self.source(index)}: the dataset holds no image there, at most the path of one.")
        try:
            return Picture(decode_file(BytesIO(row["bytes"])))
        except BrokenImage as error:
            raise BrokenImage(f"{self.source(index)}: {error}.") from error

    def label(self, index: int) -> int | None:
        """The label, as a position in `classes`; None if it has none."""
        return self._row(index, self._labels) if self._labels else None

    def source(self, index: int) -> str:
        """What to call the image."""
        return f"row {index}"

    def _row(self, index: int, column: str) -> Any:
        if not 0 <= index < self._length:
            raise IndexError(f"There is no row {index}: they are numbered 0 to {self._length - 1}.")
        return self._table.select_columns(column)[index][column]


def _column(table: Any, kind: type) -> str | None:
    """The first column whose feature is of a kind."""
    return next((name for name, feature in table.features.items() if isinstance(feature, kind)), None)


def _split_path(path: str) -> tuple[Path, str]:
    """Folder and split; a folder may have a # in its name."""
    folder, _, split = path.rpartition("#")
    if not folder or Path(os.path.expanduser(path)).is_dir():
        folder, split = path, ""
    return Path(os.path.expanduser(folder)), split
