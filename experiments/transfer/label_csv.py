"""Labels of other methods, as CSV: columns found by their headers, so that their labels stand beside ours.

One column names the layer, one the unit, one holds the text; columns of numbers are kept as scores. The model is said
by whoever brings the file. All of the file or nothing.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.db import transaction

from experiments import search
from experiments.models import Label, Layer, Model, Unit
from experiments.search.passages import label_of
from experiments.transfer.laboratory import Progress, silent
from experiments.transfer.reading import Refused, check_size, text_lines

LAYER = ("layer", "layername", "layerid", "module")
UNIT = ("unit", "neuron", "channel", "feature", "unitid", "neuronid", "unitnumber", "unitindex", "neuronindex", "index")
TEXT = ("description", "label", "caption", "explanation", "annotation", "text", "summary", "concept", "prediction")
COLUMNS, LINE, ROWS, LONGEST = 100, 200_000, 1_000_000, 10_000
AT_ONCE = 500
OURS = frozenset({"run", "person", "import", "baseline"})
"""Sources that mean something here already."""


@dataclass(frozen=True)
class Line:
    """One label of the file."""

    layer: str
    unit: int
    text: str
    scores: Mapping[str, float]


def take(path: Path, model: str, source: str, progress: Progress = silent) -> str:
    """Save the labels of a file. Returns what was saved, in words. Raises Refused naming the line."""
    source = " ".join(source.split())
    if not 0 < len(source) <= 40 or source.casefold() in OURS:
        raise Refused(f"{source[:60]!r} cannot be the name of a source: use a short one of its own, such as milan.")
    layers = layers_of(model)
    check_size(path)
    found: dict[tuple[int, int], list[Line]] = {}
    for number, line in enumerate(lines(path), 2):
        layer = layers.get(line.layer.casefold())
        if layer is None:
            there = ", ".join(sorted({each.name for each in layers.values()}))
            raise Refused(f"Line {number}: {model} has no layer {line.layer[:60]!r}. Its layers are {there[:600]}.")
        if not 0 <= line.unit < layer.units:
            raise Refused(f"Line {number}: {layer.name} has units 0 to {layer.units - 1}, not {line.unit}.")
        found.setdefault((layer.pk, line.unit), []).append(line)
        progress("Reading labels", number, number + 1)
    with transaction.atomic():
        saved, known = save(found, source, {layer.pk: layer for layer in layers.values()}, progress)
    before = f" Here already: {known:,}." if known else ""
    return f"Labels of {model} from {source}: {saved:,} saved, on {len(found):,} units.{before}"


def layers_of(model: str) -> dict[str, Layer]:
    """By name and by path, in small letters. Raises Refused if none are known."""
    layers = list(Layer.objects.filter(model__name=model).select_related("model"))
    if not layers:
        there = ", ".join(Model.objects.filter(layers__isnull=False).distinct().values_list("name", flat=True))
        raise Refused(f"The layers of {model[:100]!r} are not known here. Choose one of: {there or 'none yet'}.")
    return {layer.path.casefold(): layer for layer in layers} | {layer.name.casefold(): layer for layer in layers}


def lines(path: Path) -> Iterator[Line]:
    """The labels of a file. Raises Refused."""
    texts = text_lines(path, LINE)
    header = next(texts, "")
    comma = max(",;\t|", key=header.count)
    names = next(csv.reader([header], delimiter=comma), [])
    if len(names) > COLUMNS:
        raise Refused(f"The file has {len(names):,} columns, at most {COLUMNS} are possible: leave some out.")
    places = (place(names, LAYER, "layer"), place(names, UNIT, "unit"), place(names, TEXT, "description"))
    try:
        for number, row in enumerate(csv.reader(texts, delimiter=comma, strict=True), 2):
            if any(row):
                yield line_of(names, row, places, number)
    except csv.Error as error:
        raise Refused(f"The file is no CSV: {error}.") from None


def place(names: Sequence[str], known: Sequence[str], what: str) -> int:
    """Which column it is: the first of the known names that is there. Raises Refused."""
    bare = ["".join(letter for letter in name.casefold() if letter.isalnum()) for name in names]
    if found := next((name for name in known if name in bare), None):
        return bare.index(found)
    there = ", ".join(name[:40] for name in names[:12]) or "none"
    raise Refused(f"No column names the {what}. Call it {known[0]}; the columns are: {there}.")


def line_of(names: Sequence[str], row: Sequence[str], places: tuple[int, int, int], number: int) -> Line:
    """Raises Refused naming the line."""
    if number > ROWS:
        raise Refused(f"The file has over {ROWS:,} lines: split it.")
    if len(row) != len(names):
        raise Refused(f"Line {number} has {len(row):,} columns, the header {len(names)}.")
    layer, unit, text = (row[each].strip() for each in places)
    if not (unit.isascii() and unit.isdigit() and len(unit) < 10):
        raise Refused(f"Line {number}: {unit[:40]!r} is no number of a unit.")
    if not text or len(text) > LONGEST or "\x00" in text:
        raise Refused(f"Line {number}: the label is empty, or has over {LONGEST:,} characters.")
    rest = {names[each][:80]: number_in(row[each]) for each in range(len(row)) if each not in places}
    return Line(layer, int(unit), text, {name: score for name, score in rest.items() if score is not None})


def number_in(cell: str) -> float | None:
    try:
        found = float(cell)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def save(
    found: Mapping[tuple[int, int], Sequence[Line]], source: str, layers: Mapping[int, Layer], progress: Progress
) -> tuple[int, int]:
    """Save what is new, in the transaction under way. Returns how many are, and how many were here."""
    Unit.objects.bulk_create((Unit(layer_id=layer, number=number) for layer, number in found), ignore_conflicts=True)
    units = {(unit.layer_id, unit.number): unit for unit in Unit.objects.filter(layer__in=layers)}
    kept = Label.objects.filter(source=source, units__layer__in=layers)
    here = set(kept.values_list("units__layer", "units__number", "text"))
    fresh = [
        (units[key], Label(text=line.text, source=source, position=position, scores=dict(line.scores)))
        for key, lines in found.items()
        for position, line in enumerate(lines, 1)
        if (*key, line.text) not in here
    ]
    for start in range(0, len(fresh), AT_ONCE):
        save_some(fresh[start : start + AT_ONCE], layers)
        progress("Saving labels", min(start + AT_ONCE, len(fresh)), len(fresh))
    return len(fresh), sum(map(len, found.values())) - len(fresh)


def save_some(pairs: Sequence[tuple[Unit, Label]], layers: Mapping[int, Layer]) -> None:
    """The labels, each with its unit, and found by search from then on."""
    Label.objects.bulk_create([label for _, label in pairs])
    through = Label.units.through
    through.objects.bulk_create(through(label_id=label.pk, unit_id=unit.pk) for unit, label in pairs)
    for unit, _ in pairs:
        unit.layer = layers[unit.layer_id]
    search.write(label_of(label, unit) for unit, label in pairs)
