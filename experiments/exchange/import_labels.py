"""Labels of other methods, taken in so that they stand beside ours; `label_rows` reads their files.

The model is said by whoever brings the file, and the layer where the file does not. Lines that cannot be used are
listed, and the rest goes in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from django.db import transaction

from experiments.core.search_index import texts
from experiments.core.search_index.texts import label_of
from experiments.exchange.formats.zipped_labels import open_labels
from experiments.exchange.label_cells import UnusableLine
from experiments.exchange.label_rows import LabelFile, LabelLine
from experiments.exchange.laboratory import Progress, ignore_progress
from experiments.exchange.safe_zip import ExchangeError, check_size
from experiments.models import Label, Layer, Unit, VisionModelRow
from workers import registry

ALIASES = {"fc": ("logits",), "classifier": ("logits",), "head": ("logits",), "and": ("conditional",)}
"""What publications call a layer -> what it is called here, where the model has none of their name."""
AT_ONCE = 500
OURS = frozenset({"run", "person", "import", "baseline"})
"""Sources that mean something here already."""


def take(
    path: Path, model: str, source: str, progress: Progress = ignore_progress, *, layer: str = "", first: int = 0
) -> str:
    """Save the labels of a file that can be used. Returns what was saved and what was not, in words. Raises
    ExchangeError if none can be.

    `layer` is the one that all units are of, where the file does not say; `first` is the number it gives to the first
    unit of a layer, 0 or 1. Our own export says model and source of each label itself.
    """
    source = " ".join(source.split())
    if not _is_foreign(source):
        raise ExchangeError(
            f"{source[:60]!r} cannot be the name of a source: use a short one of its own, such as milan."
        )
    catalogue = _Catalogue(model)
    check_size(path)
    rows = open_labels(path, layer.strip())
    found = _place(rows, catalogue, first, progress)
    if not found:
        raise ExchangeError(rows.describe_unusable() or "The file has a header and no labels.")
    with transaction.atomic():
        saved, known = save(found, source, catalogue.by_key, progress)
    sentences = [f"Labels of {', '.join(catalogue.models)} from {source}: {saved:,} saved, on {len(found):,} units."]
    sentences += [f"Here already: {known:,}."] if known else []
    sentences += [f"Left out, for they hold words: {', '.join(sorted(rows.left))}."] if rows.left else []
    about = [rows.describe_unusable(), *map(registry.weights_warning, catalogue.models)]
    return " ".join([*sentences, *hints(found, catalogue.by_key, first), *filter(None, about)])


def _is_foreign(source: str) -> bool:
    return 0 < len(source) <= 40 and source.casefold() not in OURS


def _place(
    rows: LabelFile, catalogue: _Catalogue, first: int, progress: Progress
) -> dict[tuple[int, int], list[LabelLine]]:
    """Key of a layer and number of a unit -> its labels. Lines of layers and units that are not here are skipped."""
    found: dict[tuple[int, int], list[LabelLine]] = {}
    for number, line in enumerate(rows, 1):
        try:
            layer = layer_of(line, catalogue, first)
        except UnusableLine as error:
            rows.skip(error)
            continue
        found.setdefault((layer.pk, line.unit - first), []).append(line)
        progress("Reading labels", number, number + 1)
    return found


class _Catalogue:
    """The layers of the model that was said, and of those that an export of ours names."""

    def __init__(self, model: str) -> None:
        """Raises ExchangeError if no layers of the model are known."""
        self._model = model
        self._layers = {model: _layers_of(model)}

    def layers(self, line: LabelLine) -> tuple[str, Mapping[str, Layer]]:
        """The model of a line, and its layers. Raises UnusableLine."""
        model = line.model or self._model
        if model not in self._layers:
            try:
                self._layers[model] = _layers_of(model)
            except ExchangeError as error:
                raise UnusableLine(f"{line.where}: {error}") from None
        return model, self._layers[model]

    @property
    def models(self) -> list[str]:
        return list(self._layers)

    @property
    def by_key(self) -> dict[int, Layer]:
        return {layer.pk: layer for layers in self._layers.values() for layer in layers.values()}


def layer_of(line: LabelLine, catalogue: _Catalogue, first: int) -> Layer:
    """The layer, which has the unit of the line. Raises UnusableLine, with what there is; ExchangeError if the file
    seems to count from 1, for then each of its labels is one unit off."""
    model, layers = catalogue.layers(line)
    name = line.layer.casefold()
    layer = next((layers[each] for each in (name, *ALIASES.get(name, ())) if each in layers), None)
    if layer is None:
        there = ", ".join(sorted({each.name for each in layers.values()}))
        raise UnusableLine(f"{line.where}: {model} has no layer {line.layer[:60]!r}. Its layers are {there[:600]}.")
    if not 0 <= line.unit - first < layer.units:
        last = layer.units - 1 + first
        outside = f"{line.where}: {layer.name} has units {first} to {last}, not {line.unit}."
        if not first and line.unit == layer.units:
            raise ExchangeError(f"{outside} If the file counts units from 1, say so.")
        raise UnusableLine(outside)
    return layer


def hints(found: Mapping[tuple[int, int], Sequence[LabelLine]], layers: Mapping[int, Layer], first: int) -> list[str]:
    """That a file may count from 1: it names unit 1 and most others of a layer, and no unit 0."""
    units: dict[int, set[int]] = {}
    for layer, unit in found:
        units.setdefault(layer, set()).add(unit)
    whole = [there for layer, there in units.items() if 1 in there and len(there) > layers[layer].units // 2]
    if first or not whole or any(0 in there for there in units.values()):
        return []
    return [
        "No unit 0 is in the file: if it counts units from 1, every label is one unit off. Import it again, saying so."
    ]


def _layers_of(model: str) -> dict[str, Layer]:
    """By name and by path, in small letters. Raises ExchangeError if none are known."""
    layers = list(Layer.objects.filter(model__name=model).select_related("model"))
    if not layers:
        there = ", ".join(VisionModelRow.objects.filter(layers__isnull=False).distinct().values_list("name", flat=True))
        raise ExchangeError(f"The layers of {model[:100]!r} are not known here. Choose one of: {there or 'none yet'}.")
    return {layer.path.casefold(): layer for layer in layers} | {layer.name.casefold(): layer for layer in layers}


def save(
    found: Mapping[tuple[int, int], Sequence[LabelLine]], source: str, layers: Mapping[int, Layer], progress: Progress
) -> tuple[int, int]:
    """Save what is new, in the transaction under way. Returns how many are, and how many were here."""
    Unit.objects.bulk_create((Unit(layer_id=layer, number=number) for layer, number in found), ignore_conflicts=True)
    units = {(unit.layer_id, unit.number): unit for unit in Unit.objects.filter(layer__in=layers)}
    for unit in units.values():
        unit.layer = layers[unit.layer_id]
    said = {line.source for lines in found.values() for line in lines if line.source}
    kept = Label.objects.filter(source__in={source, *said}, units__layer__in=layers)
    here = set(kept.values_list("units__layer", "units__number", "text", "source"))
    fresh = [
        (units[key], _label_of(line, source, position))
        for key, lines in found.items()
        for position, line in enumerate(lines, 1)
        if not here & {(*key, line.text, source), (*key, line.text, line.source)}
    ]
    through = Label.units.through
    for start in range(0, len(fresh), AT_ONCE):
        some = fresh[start : start + AT_ONCE]
        Label.objects.bulk_create([label for _, label in some])
        through.objects.bulk_create(through(label_id=label.pk, unit_id=unit.pk) for unit, label in some)
        texts.write(label_of(label, unit) for unit, label in some)
        progress("Saving labels", start + len(some), len(fresh))
    return len(fresh), sum(map(len, found.values())) - len(fresh)


def _label_of(line: LabelLine, source: str, position: int) -> Label:
    """Labels that agents and people of another place gave come from the source that was said for the file."""
    own = line.source if _is_foreign(line.source) else source
    return Label(text=line.text, source=own, position=line.position or position, scores=dict(line.scores))
