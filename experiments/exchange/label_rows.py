"""Read the lines of a label file. Columns are found by their headers.

Known formats: tables of MILAN and CLIP-Dissect (layer, unit, description), Describe-and-Dissect (several label
columns), INVERT (neuron, concept), Network Dissection (unit, label), FALCON (lists of words with scores); the same as
JSON or JSON Lines records; JSON that maps layers to units to labels; our own export. Unusable lines are recorded and
skipped. So are extra columns that hold no numbers.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.core.params import clean_text, parse_number
from experiments.core.spreadsheets import unguard
from experiments.exchange import label_cells as cells
from experiments.exchange.label_cells import MAX_CELL_CHARS, UnusableLine
from experiments.exchange.label_columns import LAYER, UNIT, Columns, bare, find_columns
from experiments.exchange.safe_zip import ExchangeError, parse_json, text_lines

_LINE, _ROWS = 200_000, 1_000_000
_JSON_BYTES = 64 << 20
_LISTED = 10
"""Maximum number of unusable lines that are listed one by one."""


@dataclass(frozen=True)
class LabelLine:
    """One label of a file, and its location there, such as "Line 7". Only our own export names model, source and
    position."""

    where: str
    layer: str
    unit: int
    text: str
    scores: Mapping[str, float] = field(default_factory=dict)
    model: str = ""
    source: str = ""
    position: int | None = None


@dataclass
class LabelFile:
    """A label file; iterate to read it. `layer` applies to all units, "" if the file names layers."""

    path: Path
    layer: str = ""
    left: set[str] = field(default_factory=set)
    """Columns without numbers, known after reading."""
    unusable: list[str] = field(default_factory=list)
    """Reasons for the first unusable lines."""
    unusable_lines: int = 0

    def skip(self, error: UnusableLine) -> None:
        self.unusable_lines += 1
        if len(self.unusable) < _LISTED:
            self.unusable.append(str(error))

    def describe_unusable(self) -> str:
        """Return a summary of unusable lines, "" if there are none."""
        if not self.unusable_lines:
            return ""
        more = self.unusable_lines - len(self.unusable)
        told = " ".join([*self.unusable, *([f"And {more:,} more."] if more else [])])
        return f"Not usable: {self.unusable_lines:,}. {told}"

    def __iter__(self) -> Iterator[LabelLine]:
        """Yield the labels. Raises ExchangeError if the rest of the file cannot be read."""
        with self.path.open("rb") as file:
            # The first bytes tell the format: names of files do not.
            start = file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
        # Magic numbers: Parquet, and zip, which .xlsx is
        if start.startswith((b"PAR1", b"PK\x03\x04")):
            raise ExchangeError("The file is Parquet or a workbook. Save the labels as “CSV UTF-8” or JSON Lines.")
        if start[:1] not in {b"{", b"["}:
            return self._read_table()
        return self._read_records(self._read_lines()) if self._is_json_lines() else self._read_json()

    def _read_table(self) -> Iterator[LabelLine]:
        texts = text_lines(self.path, _LINE)
        columns, separator, above = self._find_header(texts)
        try:
            for number, row in enumerate(csv.reader(texts, delimiter=separator, strict=True), above + 1):
                if any(row):
                    yield from self._read_numbered_row(columns, [unguard(cell) for cell in row], number, separator)
        except csv.Error as error:
            raise ExchangeError(f"The file is no CSV: {error}.") from None

    def _find_header(self, texts: Iterator[str]) -> tuple[Columns, str, int]:
        """Return the columns, the separator and the line number of the header. Comments may come before it; numpy
        writes the header itself as a comment."""
        for number, text in enumerate(texts, 1):
            header = text.removeprefix("# ")
            # The most frequent separator of the header
            separator = max(",;\t|", key=header.count)
            try:
                return find_columns(next(csv.reader([header], delimiter=separator), []), self.layer), separator, number
            except ExchangeError:
                if not text.startswith("#") and text.strip():
                    raise
        # A file without any header: the error says which columns are needed.
        return find_columns([], self.layer), ",", 0

    def _read_numbered_row(
        self, columns: Columns, row: Sequence[str], number: int, separator: str = ""
    ) -> list[LabelLine]:
        """Return the labels of a row. An unusable row gives none and is recorded."""
        if number > _ROWS:
            raise ExchangeError(f"The file has over {_ROWS:,} lines: split it.")
        try:
            return self._read_row(columns, row, f"Line {number}", separator)
        except UnusableLine as error:
            self.skip(error)
            return []

    def _read_row(self, columns: Columns, row: Sequence[str], where: str, separator: str) -> list[LabelLine]:
        if len(row) != len(columns.names):
            raise UnusableLine(f"{where} has {len(row):,} columns, the header {len(columns.names)}.")
        if columns.own:
            return _read_own_row(columns, row, where)
        if columns.placed:
            return [read_placed({name: row[place] for name, place in columns.placed.items()}, where)]
        labels = [each for place in columns.texts for each in cells.read_labels(row[place])]
        if not labels:
            raise UnusableLine(f"{where}: the label is empty.")
        for text, _ in labels:
            _check_label(text, where)
        unit = cells.read_unit(row[columns.unit], where)
        layer = self.layer if columns.layer is None else row[columns.layer].strip()
        scores = self._read_scores(columns, row, separator)
        return [LabelLine(where, layer, unit, text, scores | own) for text, own in labels]

    def _read_scores(self, columns: Columns, row: Sequence[str], separator: str) -> dict[str, float]:
        """Return the numeric columns. Columns with text are recorded as left out."""
        found: dict[str, float] = {}
        # All other columns are scores, if they hold numbers.
        for place in set(range(len(row))) - {columns.layer, columns.unit, *columns.texts}:
            name, cell = columns.names[place][:80], row[place].strip()
            number = cells.read_number(cell, separator)
            if number is None:
                self.left |= {name} if cell else set()
            elif name and math.isfinite(number):
                found[name] = number
        return found

    def _is_json_lines(self) -> bool:
        """True if each line is its own object: the first line is one, and more lines follow or it names a unit
        itself."""
        with self.path.open("rb") as file:
            # Pretty-printed JSON fails here: its first line is "{" alone
            first, more = file.readline(_LINE).removeprefix(b"\xef\xbb\xbf"), file.read(64).strip()
        try:
            record = _parse(first, "")
        except ExchangeError:
            return False
        return isinstance(record, dict) and (bool(more) or _is_record(record))

    def _read_lines(self) -> Iterator[tuple[int, Any]]:
        for number, line in enumerate(text_lines(self.path, _LINE), 1):
            if line.strip():
                try:
                    yield number, _parse(line.encode(), f"Line {number}")
                except ExchangeError as error:
                    self.skip(UnusableLine(str(error)))

    def _read_records(self, records: Iterator[tuple[int, Any]]) -> Iterator[LabelLine]:
        """Yield labels of objects with layer, unit and label, as pandas writes rows."""
        known: dict[tuple[str, ...], Columns] = {}
        for number, record in records:
            if not isinstance(record, dict):
                self.skip(UnusableLine(f"Line {number} is no object such as {{'layer': …, 'unit': …, 'label': …}}."))
                continue
            names = tuple(record)
            if names not in known:
                # Only the last header is cached: a hostile file may have another in every line
                known = {names: find_columns(names, self.layer)}
            yield from self._read_numbered_row(
                known[names], [clean_text(cells.format_cell(each)) for each in record.values()], number
            )

    def _read_json(self) -> Iterator[LabelLine]:
        if self.path.stat().st_size > _JSON_BYTES:
            raise ExchangeError(f"A file of labels in JSON may have {_JSON_BYTES >> 20} MB.")
        data = _parse(self.path.read_bytes().removeprefix(b"\xef\xbb\xbf"), "The file")
        if isinstance(data, list) and data and all(isinstance(each, dict) and _is_record(each) for each in data):
            return self._read_records(enumerate(data, 1))
        return self._read_map({self.layer: data} if self.layer else data)

    def _read_map(self, layers: Any) -> Iterator[LabelLine]:
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
                try:
                    number = cells.read_unit(unit, where)
                    yield from [LabelLine(where, layer, number, text) for text in cells.read_texts(value, where)]
                except UnusableLine as error:
                    self.skip(error)


def read_placed(cell: Mapping[str, str], where: str) -> LabelLine:
    """Return a label of our exports for other tools; cells are named as for CoSy. The label's text is kept exactly.
    Raises UnusableLine."""
    _check_label(cell["description"], where)
    place, scores = cells.read_unit(cell["unit"], where), cells.read_scores(cell["scores"], where)
    position = parse_number(cell["position"])
    return LabelLine(where, cell["layer"], place, cell["description"], scores, cell["model"], cell["source"], position)


def _check_label(text: str, where: str) -> None:
    if not text.strip():
        raise UnusableLine(f"{where}: the label is empty.")
    if len(text) > MAX_CELL_CHARS or "\x00" in text:
        raise UnusableLine(f"{where}: the label has over {MAX_CELL_CHARS:,} characters, or a zero byte.")


def _read_own_row(columns: Columns, row: Sequence[str], where: str) -> list[LabelLine]:
    """Return a line of our own export once per unit of its label."""
    cell = {name: row[columns.place(name)].strip() for name in ("source", "position", "scores", "units")}
    label = row[columns.place("label")]
    _check_label(label, where)
    scores, position = cells.read_scores(cell["scores"], where), parse_number(cell["position"])
    units = parse_json((cell["units"] or "[]").encode(), f"{where}: units")
    if not isinstance(units, list) or not units:
        raise UnusableLine(f"{where} names no unit.")
    found = []
    for unit in units:
        # From the right: names of models may contain the separator.
        model, layer, number = ["", "", *str(unit).rsplit(" / ", 2)][-3:]
        place = cells.read_unit(number, where)
        found.append(LabelLine(where, layer, place, label, scores, model, cell["source"], position))
    return found


def _is_record(data: Mapping[str, Any]) -> bool:
    """True for an object with a field for layer or unit, false for one that maps layers to units."""
    return any(bare(name) in {*LAYER, *UNIT} and not isinstance(value, dict) for name, value in data.items())


def _parse(data: bytes, where: str) -> Any:
    """Parse JSON; NaN and infinities, which Python writes, become None. Raises ExchangeError."""
    return parse_json(data, where, lambda _: None)
