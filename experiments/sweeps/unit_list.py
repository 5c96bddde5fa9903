"""Read a user's list of units: CSV with the columns model, layer and unit; columns with a single possible value may be
left out."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO

from experiments.core.errors import InvalidInput
from experiments.core.unit_names import unit_numbers
from experiments.models import Layer
from workers.errors import UnknownName

MAX_CHARS = 4_000_000
"""Of a list in a file."""
MAX_SENT = 500_000
"""Of a list in a request, whose body has at most `DATA_UPLOAD_MAX_MEMORY_SIZE` bytes: a line feed takes two in JSON."""
_COLUMNS = ("model", "layer", "unit")


def read_unit_list(text: str, layers: Sequence[Layer]) -> dict[Layer, list[int]]:
    """Return the units that the lines name, each once, of these layers of one model.

    A first line may name the columns; without one, a line is unit, or layer and unit, or model, layer and unit. A unit
    is a number, a range of numbers as 8-12, or a name. Raises InvalidInput with the number of the line.
    """
    if len(text) > MAX_CHARS:
        raise InvalidInput(f"The list has {len(text):,} characters; at most {MAX_CHARS:,} are read.", "units")
    by_name = {layer.name: layer for layer in layers}
    # Sets, since a list may name a unit several times.
    found: dict[Layer, set[int]] = {layer: set() for layer in layers}
    columns: Sequence[str] | None = None
    for number, cells in enumerate(_read_rows(text), 1):
        if not any(cells):
            continue
        # Only before the first unit: later the word may be a name.
        if columns is None and "unit" in [cell.casefold() for cell in cells]:
            columns = [cell.casefold() for cell in cells]
            continue
        row = _read_row(cells, columns, number)
        layer = _find_layer(row, by_name, number)
        try:
            found[layer].update(unit_numbers(row["unit"], layer.name, layer.units, layer.names))
        except UnknownName as error:
            raise InvalidInput(f"Line {number}: {error}", "units") from None
    return {layer: sorted(numbers) for layer, numbers in found.items()}


def _read_rows(text: str) -> list[list[str]]:
    try:
        # Spreadsheets begin a file with a byte order mark
        return [[cell.strip() for cell in row] for row in csv.reader(StringIO(text.lstrip("\ufeff")), strict=True)]
    except csv.Error as error:
        raise InvalidInput(f"The list is no CSV: {error}. Write a line for each unit, as layer4,7.", "units") from None


def _read_row(cells: Sequence[str], columns: Sequence[str] | None, number: int) -> dict[str, str]:
    """Return the cells of a line by column."""
    # Without a header, the leftmost columns may be missing
    names = columns or _COLUMNS[-len(cells) :]
    if len(cells) != len(names):
        wanted = ", ".join(columns or _COLUMNS)
        raise InvalidInput(f"Line {number} has {len(cells)} cells: write {wanted}.", "units")
    return dict(zip(names, cells, strict=True))


def _find_layer(row: dict[str, str], layers: dict[str, Layer], number: int) -> Layer:
    """Return the layer that a line means."""
    there = next(iter(layers.values()), None)
    if there is None:
        raise InvalidInput("Choose the model that the list is of.", "model")
    if (model := row.get("model")) and model != there.model.name:
        raise InvalidInput(
            f"Line {number} names the model “{model[:80]}”, and the sweep is of {there.model.name}: a sweep asks about "
            "one model. Start one for each.",
            "units",
        )
    name = row.get("layer") or (there.name if len(layers) == 1 else "")
    if not name:
        raise InvalidInput(f"Line {number} names no layer, and there are several: write layer,unit.", "units")
    if name not in layers:
        raise InvalidInput(f"Line {number} names the layer “{name[:80]}”: choose one of {', '.join(layers)}.", "units")
    return layers[name]
