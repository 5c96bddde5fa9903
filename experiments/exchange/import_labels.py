"""Import labels of other methods; `label_rows` reads their files.

The form gives the model, and the layer if the file does not. Unusable lines are listed; the others are saved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from django.db import transaction

from experiments.core.search_index import texts
from experiments.core.search_index.texts import label_of
from experiments.exchange.formats.zipped_labels import open_labels
from experiments.exchange.image_services import Progress, ignore_progress
from experiments.exchange.label_cells import UnusableLine
from experiments.exchange.label_rows import LabelFile, LabelLine
from experiments.exchange.safe_zip import ExchangeError, check_size
from experiments.models import Label, Layer, Unit, VisionModelRow
from workers import registry

ALIASES = {"fc": ("logits",), "classifier": ("logits",), "head": ("logits",), "and": ("conditional",)}
"""Layer names of publications -> local names, tried where the model has no layer of the published name."""
AT_ONCE = 500
OURS = frozenset({"run", "person", "import", "baseline"})
"""Sources that are reserved for labels made here."""


def import_label_file(
    path: Path, model: str, source: str, progress: Progress = ignore_progress, *, layer: str = "", first: int = 0
) -> str:
    """Save the usable labels of a file. Return a summary in words. Raises ExchangeError if no label is usable.

    `layer` applies to all units if the file names none. `first` is the file's number of the first unit of a layer, 0 or
    1. Our own exports name model and source of each label.
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
    sentences += [f"Columns left out because they hold text: {', '.join(sorted(rows.left))}."] if rows.left else []
    about = [rows.describe_unusable(), *map(registry.weights_warning, catalogue.models)]
    return " ".join([*sentences, *_find_hints(found, catalogue.by_key, first), *filter(None, about)])


def _is_foreign(source: str) -> bool:
    return 0 < len(source) <= 40 and source.casefold() not in OURS


def _place(
    rows: LabelFile, catalogue: _Catalogue, first: int, progress: Progress
) -> dict[tuple[int, int], list[LabelLine]]:
    """Return labels by (layer key, unit number). Lines of unknown layers and units are skipped and recorded."""
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
    """Layers of the model given in the form, and of models that our own export names."""

    def __init__(self, model: str) -> None:
        """Read the layers of a model. Raises ExchangeError if none is known."""
        self._model = model
        self._layers = {model: _layers_of(model)}

    def layers(self, line: LabelLine) -> tuple[str, Mapping[str, Layer]]:
        """Return the model of a line and its layers. Raises UnusableLine."""
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
    """Return the layer of a line, after checking the unit. Raises UnusableLine naming the valid values; ExchangeError
    if the file seems to count from 1, because then every label is off by one."""
    model, layers = catalogue.layers(line)
    name = line.layer.casefold()
    layer = next((layers[each] for each in (name, *ALIASES.get(name, ())) if each in layers), None)
    if layer is None:
        there = ", ".join(sorted({each.name for each in layers.values()}))
        raise UnusableLine(f"{line.where}: {model} has no layer {line.layer[:60]!r}. Its layers are {there[:600]}.")
    if not 0 <= line.unit - first < layer.units:
        last = layer.units - 1 + first
        outside = f"{line.where}: {layer.name} has units {first} to {last}, not {line.unit}."
        # One past the last unit is a sign of counting from 1, so the whole file is refused
        if not first and line.unit == layer.units:
            raise ExchangeError(f"{outside} If the file counts units from 1, say so.")
        raise UnusableLine(outside)
    return layer


def _find_hints(
    found: Mapping[tuple[int, int], Sequence[LabelLine]], layers: Mapping[int, Layer], first: int
) -> list[str]:
    """Warn if the file may count from 1: most units of a layer, with unit 1, and no unit 0."""
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
    """Return the layers by name and by path, in lower case. Raises ExchangeError if there are none."""
    layers = list(Layer.objects.filter(model__name=model).select_related("model"))
    if not layers:
        there = ", ".join(VisionModelRow.objects.filter(layers__isnull=False).distinct().values_list("name", flat=True))
        raise ExchangeError(f"The layers of {model[:100]!r} are not known here. Choose one of: {there or 'none yet'}.")
    # A name wins over an equal path
    return {layer.path.casefold(): layer for layer in layers} | {layer.name.casefold(): layer for layer in layers}


def save(
    found: Mapping[tuple[int, int], Sequence[LabelLine]], source: str, layers: Mapping[int, Layer], progress: Progress
) -> tuple[int, int]:
    """Save new labels, in the current transaction. Return (number saved, number that already existed)."""
    # With `ignore_conflicts` Django sets no keys, so the units are read afterwards.
    Unit.objects.bulk_create((Unit(layer_id=layer, number=number) for layer, number in found), ignore_conflicts=True)
    units = {(unit.layer_id, unit.number): unit for unit in Unit.objects.filter(layer__in=layers)}
    for unit in units.values():
        unit.layer = layers[unit.layer_id]
    said = {line.source for lines in found.values() for line in lines if line.source}
    kept = Label.objects.filter(source__in={source, *said}, units__layer__in=layers)
    # Importing a file again must not duplicate its labels
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
    """Return the label as a row. Labels of agents and people of another installation get the source typed in the
    form."""
    own = line.source if _is_foreign(line.source) else source
    return Label(text=line.text, source=own, position=line.position or position, scores=dict(line.scores))
