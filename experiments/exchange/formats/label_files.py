"""Labels as the tools of the field read them: a CSV as CoSy's, text files as delphi's, JSON Lines as Neuronpedia's.

Each has what the tool reads, and beside it what it leaves alone and an import here needs: model, source, position and
scores. A label of several units is written for each. Places that a person may not know are empty, as in other formats.
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
from experiments.exchange.laboratory import Progress
from experiments.exchange.safe_zip import MEMBERS, ExchangeError
from experiments.exchange.tables import LABELS, TableColumn
from experiments.models import Format

COSY_COLUMNS = ("layer", "unit", "description", "model", "source", "position", "scores")
"""The first three as MILAN and CLIP-Dissect write them, whose files CoSy reads."""
INDEX = "index.jsonl"
"""The member of delphi's files that says what their names do not."""
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
    """A label on one of its units; the place is empty where a person may not know it."""

    model: str
    layer: str
    unit: int | None
    row: dict[str, Any]


def write(form: Format, rows: QuerySet[Any], target: IO[bytes], progress: Progress, viewer: User | None = None) -> int:
    """Write the labels for a person, or for anybody. Returns how many labels they are."""
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
    """The label on each of its units."""
    for unit in row["units"]:
        model, layer, number = unit.rsplit(" / ", 2)
        yield _PlacedLabel(model, layer, int(number), row)
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
    """A file for each label, which holds it as JSON: delphi reads one for each latent. The second label of a unit from
    the same source lies in another folder, and so on. Labels without a place stand in the index alone."""
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
                if name in pack.hashes:  # two names of layers are the same once they are safe
                    name = f"{folder}/explanations/{_safe(each.layer)}-{len(pack.hashes)}_latent{each.unit}.txt"
                pack.add(name, [json.dumps(each.row["label"], ensure_ascii=False).encode()])
            index.append(json_line(_index_line(each, name)))
        pack.add(INDEX, index)


def _index_line(each: _PlacedLabel, name: str) -> dict[str, Any]:
    place = {"file": name, "model": each.model, "layer": each.layer, "unit": each.unit}
    return place | {part: each.row[part] for part in ("source", "position", "scores")}


def _check_members(count: int) -> None:
    """Raises ExchangeError for more files than an import takes."""
    if count >= MEMBERS - 1:
        raise ExchangeError(f"These are over {MEMBERS - 1:,} files, one for each label: choose a model or a layer.")


def _name_folder(folders: dict[tuple[str, str, int], str], model: str, source: str, number: int) -> str:
    """The folder of the first labels of a model from a source, of the second ones, and so on: no two are the same."""
    key = (model, source, number)
    if key not in folders:
        name = f"{_safe(model)}/{_safe(source)}" + (f"-{number}" if number > 1 else "")
        taken = set(folders.values())
        folders[key] = name if name not in taken else f"{name}.{len(folders)}"
    return folders[key]


def _safe(name: str) -> str:
    """What a part of a path may be called."""
    return _UNSAFE.sub("_", name)[:80].strip(".") or "_"


_WRITERS: dict[Format, Callable[[Iterator[_PlacedLabel], IO[bytes]], None]] = {
    Format.COSY: _write_cosy,
    Format.DELPHI: _write_delphi,
    Format.NEURONPEDIA: _write_neuronpedia,
}
