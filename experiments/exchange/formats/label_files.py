"""Write labels for other tools: CSV for CoSy, text files for delphi, JSON Lines for Neuronpedia.

Each format also holds what imports need: model, source, position and scores. A label of several units is written once
per unit. Units that a person may not see are empty, as in all formats.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import IO, Any

from django.contrib.auth.models import User
from django.db.models import QuerySet

from experiments.core.spreadsheets import cell, csv_header, csv_line, json_line
from experiments.exchange.export_bundle import Pack
from experiments.exchange.image_services import Progress
from experiments.exchange.safe_zip import MEMBERS, ExchangeError
from experiments.exchange.tables import LABELS, TableColumn
from experiments.models import Format

COSY_COLUMNS = ("layer", "unit", "description", "model", "source", "position", "scores")
"""The first three columns are those of MILAN and CLIP-Dissect, which CoSy reads."""
INDEX = "index.jsonl"
"""Member of a delphi archive that holds what the file names cannot."""
_TABLE = replace(
    LABELS,
    columns=[
        *LABELS.columns,
        TableColumn("backbone_model", "text", lambda label: label.run.backbone_model if label.run else ""),
    ],
)
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class _PlacedLabel:
    """A label of one unit. The unit is empty where the person may not see it."""

    model: str
    layer: str
    unit: int | None
    row: dict[str, Any]


def write(form: Format, rows: QuerySet[Any], target: IO[bytes], progress: Progress, viewer: User | None = None) -> int:
    """Write the labels that this person may see, without a person those that everyone may see. Returns the number of
    labels."""
    count = 0

    def placed() -> Iterator[_PlacedLabel]:
        nonlocal count
        for batch in _TABLE.batches(rows, progress, viewer):
            count += len(batch)
            for row in batch:
                yield from _place(row)

    _WRITERS[form](placed(), target)
    return count


def _place(row: dict[str, Any]) -> Iterator[_PlacedLabel]:
    """Yield the label once per unit."""
    for unit in row["units"]:
        model, layer, number = unit.rsplit(" / ", 2)
        yield _PlacedLabel(model, layer, int(number), row)
    # A hidden unit leaves an empty list; the label itself is still exported
    if not row["units"]:
        yield _PlacedLabel(row["model"] or "", row["layer"] or "", row["unit"], row)


def _write_cosy(labels: Iterator[_PlacedLabel], target: IO[bytes]) -> None:
    target.write(csv_header(COSY_COLUMNS))
    for each in labels:
        place = [each.layer, each.unit, each.row["label"], each.model]
        target.write(csv_line(map(cell, [*place, each.row["source"], each.row["position"], each.row["scores"]])))


def _write_neuronpedia(labels: Iterator[_PlacedLabel], target: IO[bytes]) -> None:
    for each in labels:
        scores = [
            {"explanationScoreTypeName": name, "explanationScoreModelName": None, "value": value}
            for name, value in each.row["scores"].items()
        ]
        line = {
            "modelId": each.model,
            "layer": each.layer,
            "index": "" if each.unit is None else str(each.unit),  # Neuronpedia keeps it as text
            "description": each.row["label"],
            "explanationModelName": each.row["backbone_model"] or None,
            "typeName": each.row["source"],
            "position": each.row["position"],
            "scores": scores,
        }
        target.write(json_line(line))


def _write_delphi(labels: Iterator[_PlacedLabel], target: IO[bytes]) -> None:
    """Write one JSON file per label: delphi reads one file per latent. The second label of a unit from the same source
    goes to another folder, and so on. Labels without a unit are in the index only."""
    seen: Counter[tuple[str, str, int, str]] = Counter()
    folders: dict[tuple[str, str, int], str] = {}
    index: list[bytes] = []
    with zipfile.ZipFile(target, "w") as packed:
        pack = Pack(packed)
        for each in labels:
            source, name = each.row["source"], ""
            if each.unit is not None:
                key = (each.model, each.layer, each.unit, source)
                seen[key] += 1
                folder = _name_folder(folders, each.model, source, seen[key])
                name = f"{folder}/explanations/{_safe(each.layer)}_latent{each.unit}.txt"
                _check_members(len(pack.hashes))
                if name in pack.hashes:  # Two layer names can become equal by `_safe`
                    name = f"{folder}/explanations/{_safe(each.layer)}-{len(pack.hashes)}_latent{each.unit}.txt"
                pack.add(name, [json.dumps(each.row["label"], ensure_ascii=False).encode()])
            index.append(json_line(_index_line(each, name)))
        pack.add(INDEX, index)


def _index_line(each: _PlacedLabel, name: str) -> dict[str, Any]:
    place = {"file": name, "model": each.model, "layer": each.layer, "unit": each.unit}
    return place | {part: each.row[part] for part in ("source", "position", "scores")}


def _check_members(count: int) -> None:
    """Raise ExchangeError for more files than an import accepts."""
    if count >= MEMBERS - 1:
        raise ExchangeError(f"These are over {MEMBERS - 1:,} files, one for each label: choose a model or a layer.")


def _name_folder(folders: dict[tuple[str, str, int], str], model: str, source: str, number: int) -> str:
    """Return a unique folder for the first labels of a model and source, another for the second ones, and so on."""
    key = (model, source, number)
    if key not in folders:
        name = f"{_safe(model)}/{_safe(source)}" + (f"-{number}" if number > 1 else "")
        # Different names may become equal by `_safe`
        taken = set(folders.values())
        folders[key] = name if name not in taken else f"{name}.{len(folders)}"
    return folders[key]


def _safe(name: str) -> str:
    """Return the name with characters that are unsafe in a path replaced."""
    return _UNSAFE.sub("_", name)[:80].strip(".") or "_"


_WRITERS: dict[Format, Callable[[Iterator[_PlacedLabel], IO[bytes]], None]] = {
    Format.COSY: _write_cosy,
    Format.DELPHI: _write_delphi,
    Format.NEURONPEDIA: _write_neuronpedia,
}
