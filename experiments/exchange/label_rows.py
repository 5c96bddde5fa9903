"""The lines of a file of labels, whatever method wrote it: columns are found by their headers.

Known are the tables of MILAN and CLIP-Dissect (layer, unit, description), Describe-and-Dissect (several columns of
labels), INVERT (neuron, concept), Network Dissection (unit, label) and FALCON (lists of words with scores), and JSON
that maps layers to units to labels. What is no label, no number and no place is named as left out.
"""

from __future__ import annotations

import ast
import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.core.params import clean_text, parse_number
from experiments.exchange.safe_zip import ExchangeError, parse_json, text_lines

LAYER = ("layer", "layername", "layerid", "module")
UNIT = ("unit", "neuron", "channel", "feature", "unitid", "neuronid", "unitnumber", "unitindex", "neuronindex", "index")
UNIT_LAST = ("group",)
"""Taken for the unit where nothing else is: so FALCON calls it."""
TEXT = ("description", "label", "caption", "explanation", "annotation", "text", "summary", "concept", "prediction")
LISTS = ("conceptsetnounphrases", "conceptsetwords")
"""Columns of FALCON: lists of (word, score)."""
NUMBERED = re.compile(r"(label|description|caption|candidate)[0-9]{1,2}")
COLUMNS, LINE, ROWS, LONGEST = 100, 200_000, 1_000_000, 10_000
MOST_WORDS = 10
"""Words that are kept of a list."""
LARGEST = 1e30
"""No score of a word is larger."""
JSON_BYTES = 64 << 20


@dataclass(frozen=True)
class LabelLine:
    """One label of the file, and where it stands: "Line 7"."""

    where: str
    layer: str
    unit: int
    text: str
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Columns:
    """Which column holds what; `layer` is None where the file names none."""

    names: Sequence[str]
    layer: int | None
    unit: int
    texts: Sequence[int]


@dataclass
class LabelFile:
    """A file of labels. `layer` is the one that its units are of, "" where the file says so itself."""

    path: Path
    layer: str = ""
    left: set[str] = field(default_factory=set)
    """Columns that are left out, once the lines have been read."""

    def __iter__(self) -> Iterator[LabelLine]:
        """Raises ExchangeError naming the line."""
        with self.path.open("rb") as file:
            start = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
        return self.of_json() if start[:1] in {b"{", b"["} else self.of_table()

    def of_table(self) -> Iterator[LabelLine]:
        texts = text_lines(self.path, LINE)
        header = next(texts, "")
        comma = max(",;\t|", key=header.count)
        names = next(csv.reader([header], delimiter=comma), [])
        if len(names) > COLUMNS:
            raise ExchangeError(f"The file has {len(names):,} columns, at most {COLUMNS} are possible: leave some out.")
        columns = self.columns(names)
        try:
            for number, row in enumerate(csv.reader(texts, delimiter=comma, strict=True), 2):
                if any(row):
                    yield from self.of_row(columns, row, number)
        except csv.Error as error:
            raise ExchangeError(f"The file is no CSV: {error}.") from None

    def columns(self, names: Sequence[str]) -> Columns:
        """Raises ExchangeError for a header that names no unit, no label, or no layer where none was said."""
        bare = ["".join(letter for letter in name.casefold() if letter.isalnum()) for name in names]
        layer = next((bare.index(name) for name in LAYER if name in bare), None)
        if layer is None and not self.layer:
            raise missing(names, "layer", "Call it layer, or say of which layer all units are")
        if layer is not None and self.layer:
            raise ExchangeError(
                f"The column {names[layer][:40]!r} names the layers: say no other layer beside the file."
            )
        unit = next((bare.index(name) for name in (*UNIT, *UNIT_LAST) if name in bare), None)
        if unit is None:
            raise missing(names, "unit", "Call it unit")
        one = [bare.index(name) for name in (*TEXT, *LISTS) if name in bare][:1]
        texts = one or [place for place, name in enumerate(bare) if NUMBERED.fullmatch(name)]
        if not texts:
            raise missing(names, "description", "Call it description")
        return Columns(names, layer, unit, texts)

    def of_row(self, columns: Columns, row: Sequence[str], number: int) -> Iterator[LabelLine]:
        where = f"Line {number}"
        if number > ROWS:
            raise ExchangeError(f"The file has over {ROWS:,} lines: split it.")
        if len(row) != len(columns.names):
            raise ExchangeError(f"{where} has {len(row):,} columns, the header {len(columns.names)}.")
        unit = _unit_in(row[columns.unit], where)
        layer = self.layer if columns.layer is None else row[columns.layer].strip()
        scores = self.scores(columns, row)
        found = [each for place in columns.texts for each in _labels_in(row[place])]
        if not found and len(columns.texts) == 1:
            raise ExchangeError(f"{where}: the label is empty.")
        for text, own in found:
            if len(text) > LONGEST or "\x00" in text:
                raise ExchangeError(f"{where}: the label has over {LONGEST:,} characters, or a zero byte.")
            yield LabelLine(where, layer, unit, text, scores | own)

    def scores(self, columns: Columns, row: Sequence[str]) -> dict[str, float]:
        """The columns of numbers; those that hold words are noted as left out."""
        found: dict[str, float] = {}
        for place in set(range(len(row))) - {columns.layer, columns.unit, *columns.texts}:
            name, cell = columns.names[place][:80], row[place].strip()
            try:
                number = float(cell)
            except ValueError:
                self.left |= {name} if cell else set()
                continue
            if name and math.isfinite(number):
                found[name] = number
        return found

    def of_json(self) -> Iterator[LabelLine]:
        if self.path.stat().st_size > JSON_BYTES:
            raise ExchangeError(f"A file of labels in JSON may have {JSON_BYTES >> 20} MB.")
        data = parse_json(self.path.read_bytes(), "The file")
        layers = {self.layer: data} if self.layer else data
        if not isinstance(layers, dict):
            raise ExchangeError('The file is no JSON such as {"layer4": {"122": "boats"}}, so it holds no labels.')
        if layers and all(
            isinstance(units, list) and all(isinstance(n, int) for n in units) for units in layers.values()
        ):
            raise ExchangeError("The file lists units and holds no labels: there is nothing in it to import.")
        for layer, units in layers.items():
            if not isinstance(units, dict):
                raise ExchangeError(
                    f"{layer[:40]!r} is no object of units and their labels, such as {{'122': 'boats'}}."
                )
            for unit, value in units.items():
                where = f"Unit {unit[:20]!r} of {layer[:40]!r}"
                for text in _texts_in(value, where):
                    yield LabelLine(where, layer, _unit_in(unit, where), text)


def missing(names: Sequence[str], what: str, remedy: str) -> ExchangeError:
    there = ", ".join(name[:40] for name in names[:12]) or "none"
    return ExchangeError(f"No column names the {what}. {remedy}; the columns are: {there}.")


def _unit_in(cell: str, where: str) -> int:
    written = cell.strip()
    if (unit := parse_number(written)) is None:
        raise ExchangeError(f"{where}: {written[:40]!r} is no number of a unit.")
    return unit


def _labels_in(cell: str) -> list[tuple[str, dict[str, float]]]:
    """The label of a cell, or those of a list of (word, score) with their scores; nothing of an empty cell."""
    text = cell.strip()
    if text.startswith("[") and text.endswith("]"):
        try:
            listed = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            listed = None
        if isinstance(listed, list) and listed and all(_is_scored(each) for each in listed):
            return [(word.strip(), {"score": float(score)}) for word, score in listed[:MOST_WORDS]]
    return [(text, {})] if text else []


def _is_scored(each: Any) -> bool:
    if not isinstance(each, list | tuple) or len(each) != 2:
        return False
    word, score = each
    # Compared, since a whole number of hundreds of digits is no float.
    return isinstance(word, str) and bool(word.strip()) and isinstance(score, int | float) and abs(score) <= LARGEST


def _texts_in(value: Any, where: str) -> list[str]:
    """A label, several, or an object that names it."""
    if isinstance(value, dict):
        value = next((value[name] for name in (*TEXT, "labels") if name in value), None)
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) and 0 < len(text) <= LONGEST for text in texts):
        raise ExchangeError(f"{where}: no label of at most {LONGEST:,} characters stands there.")
    return [clean_text(text) for text in texts]
