"""Write a folder that `datasets.load_dataset` opens: a card, and Parquet files with images and typed columns."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from django.contrib.auth.models import User
from django.db.models import QuerySet

from experiments.core.spreadsheets import json_line
from experiments.exchange.export_bundle import EPOCH, Pack, pixels
from experiments.exchange.export_words import describe_query
from experiments.exchange.formats import selection
from experiments.exchange.formats.card import write_card
from experiments.exchange.formats.zipped_labels import LABELS_MEMBER
from experiments.exchange.image_services import Progress
from experiments.exchange.safe_zip import BUNDLE, ExchangeError
from experiments.exchange.tables import TABLES
from experiments.models import Export, ExportSubject, Format
from workers.record.origins import Origin
from workers.record.statuses import Status

if TYPE_CHECKING:
    from datasets import Features  # type: ignore[import-untyped]

GROUP_ROWS, GROUP_BYTES = 1_000, 16 << 20
"""Maximum size of a row group, which stays in memory until it is written."""
FILE_ROWS, FILE_BYTES = 50_000, 200 << 20
_IMAGES = ("image", "masked", "map")
"""Columns with keys of images in tables, and with the images themselves in a dataset."""
_CHOICES: Mapping[tuple[ExportSubject, str], list[str]] = {
    (ExportSubject.OBSERVATIONS, "origin"): [each.value for each in Origin],
    (ExportSubject.RUNS, "status"): [each.value for each in Status],
}
"""Columns with a few possible values."""


def write(export: Export, chosen: QuerySet[Any], target: IO[bytes], progress: Progress) -> int:
    """Write the folder as a zip. Returns the number of chosen rows in it."""
    viewer = export.job.asked_by
    counts: dict[ExportSubject, int] = {}
    with zipfile.ZipFile(target, "w") as packed:
        for what, rows in selection.list_tables(chosen):
            counts[what] = _Writer(packed, what, viewer).write(rows, progress)
        if export.format == Format.DATASET_RUNS:
            _add_whole_runs(packed, chosen, progress, viewer)
        bundle = BUNDLE if export.format == Format.DATASET_RUNS else ""
        card = write_card(_head(counts), describe_query(export.what, export.query), counts, bundle)
        Pack(packed).add("README.md", [card.encode()])
    return counts.get(ExportSubject(export.what), 0)


def _add_whole_runs(packed: zipfile.ZipFile, chosen: QuerySet[Any], progress: Progress, viewer: User | None) -> None:
    # Imported here, because `exchange` imports this module
    from workers.jobs.exchange import add_runs

    pack = Pack(packed, BUNDLE)
    add_runs(pack, selection.list_whole_runs(chosen, viewer), progress, viewer)
    pack.add_manifest()


def features_of(what: ExportSubject) -> Features:
    """Return the typed columns of a table."""
    from datasets import ClassLabel, Features, Image, List, Value

    kinds: dict[str, Any] = {
        "text": Value("string"),
        "whole": Value("int64"),
        "figure": Value("float64"),
        "flag": Value("bool"),
        "time": Value("timestamp[us, tz=UTC]"),
        "texts": List(Value("string")),
        "json": Value("string"),
    }
    found: dict[str, Any] = {}
    for column in TABLES[what].columns:
        if column.name in _IMAGES:
            found |= {column.name: Image(), f"{column.name}_key": Value("string")}
        elif choices := _CHOICES.get((what, column.name)):
            found[column.name] = ClassLabel(names=choices)
        else:
            found[column.name] = kinds[column.kind]
    return Features(found)


def _head(counts: Mapping[ExportSubject, int]) -> str:
    """Return the YAML of the card: the files and columns of each table."""
    from datasets import DatasetInfo
    from datasets.info import DatasetInfosDict  # type: ignore[import-untyped]
    from huggingface_hub import DatasetCardData

    # The first table is what `load_dataset` opens without a name.
    configs = [
        {"config_name": str(what), "data_files": f"data/{what}-*.parquet"} | ({} if place else {"default": True})
        for place, what in enumerate(counts)
    ]
    card = DatasetCardData(license="unknown", configs=configs)
    infos = {str(what): DatasetInfo(config_name=str(what), features=features_of(what)) for what in counts}
    DatasetInfosDict(infos).to_dataset_card_data(card)
    return str(card.to_yaml())


class _Member(io.RawIOBase):
    """A member of an archive being written. It has `tell`, which Parquet needs."""

    def __init__(self, packed: zipfile.ZipFile, name: str) -> None:
        # A fixed time, so that the same rows give the same bytes.
        info = zipfile.ZipInfo(name, EPOCH)  # Stored: Parquet is compressed already
        info.external_attr = 0o644 << 16
        # The size is not known before the member is written.
        self._member = packed.open(info, "w", force_zip64=True)
        self._place = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._place += (size := self._member.write(data))
        return size

    def tell(self) -> int:
        return self._place

    def close(self) -> None:
        if not self.closed:
            self._member.close()
        super().close()


@dataclass
class _Writer:
    """Writes one table as Parquet files of limited size."""

    packed: zipfile.ZipFile
    what: ExportSubject
    viewer: User | None

    def write(self, rows: QuerySet[Any], progress: Progress) -> int:
        """Write the rows. Returns their number."""
        count = number = 0
        # One row group at a time, so that memory does not grow with the number of rows.
        groups = self._groups(rows, progress)
        # A table without rows still gets a file, with its columns
        group: list[dict[str, Any]] | None = next(groups, [])
        while group is not None:
            group, written = self._write_file(f"data/{self.what}-{number:05}.parquet", group, groups)
            count, number = count + written, number + 1
        if self.what == ExportSubject.LABELS:
            self._add_lines(rows, progress)
        return count

    def _write_file(
        self, name: str, group: list[dict[str, Any]], groups: Iterator[list[dict[str, Any]]]
    ) -> tuple[list[dict[str, Any]] | None, int]:
        """Write a file that starts with this group. Returns (first group of the next file, rows written)."""
        import pyarrow as pa
        from pyarrow import parquet

        schema, written = features_of(self.what).arrow_schema, 0
        following: list[dict[str, Any]] | None = group
        # A large dictionary stores an image once that occurs several times in a row group
        options = {"compression": "zstd", "dictionary_pagesize_limit": 2 * GROUP_BYTES}
        with _Member(self.packed, name) as member, parquet.ParquetWriter(member, schema, **options) as writer:
            while following is not None and written < FILE_ROWS and member.tell() < FILE_BYTES:
                writer.write_table(pa.Table.from_pylist(following, schema=schema))
                written += len(following)
                following = next(groups, None)
        return following, written

    def _groups(self, rows: QuerySet[Any], progress: Progress) -> Iterator[list[dict[str, Any]]]:
        """Yield row groups, with images and values as Parquet stores them."""
        group: list[dict[str, Any]] = []
        size = 0
        for batch in TABLES[self.what].batches(rows, progress, self.viewer):
            for row in batch:
                group.append(ready := self._ready(row))
                size += sum(len(ready[name]["bytes"]) for name in _IMAGES if ready.get(name))
                if len(group) >= GROUP_ROWS or size >= GROUP_BYTES:
                    yield group
                    group, size = [], 0
        if group:
            yield group

    def _ready(self, row: dict[str, Any]) -> dict[str, Any]:
        kinds = {column.name: column.kind for column in TABLES[self.what].columns}
        ready: dict[str, Any] = {}
        for name, value in row.items():
            if name in _IMAGES:
                ready |= {name: _read_image(value), f"{name}_key": value}
            elif choices := _CHOICES.get((self.what, name)):
                # A value that is not among the choices has no number.
                ready[name] = choices.index(value) if value in choices else None
            elif kinds[name] == "json" and value is not None:  # No fixed schema
                ready[name] = json.dumps(value, ensure_ascii=False)
            else:
                ready[name] = value
        return ready

    def _add_lines(self, rows: QuerySet[Any], progress: Progress) -> None:
        """Add the labels as JSON Lines, which imports read."""
        batches = TABLES[self.what].batches(rows, progress, self.viewer)
        Pack(self.packed).add(LABELS_MEMBER, (json_line(row) for batch in batches for row in batch))


def _read_image(key: str | None) -> dict[str, Any] | None:
    """Return the image as a dataset stores it; None if there is none or its file is missing."""
    if not key:
        return None
    try:
        return {"bytes": b"".join(pixels(key)), "path": f"{key}.png"}
    except ExchangeError:
        return None
