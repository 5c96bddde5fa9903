"""From what a person names on the command line to the system under study."""

from __future__ import annotations

from experiments.core.unit_names import unit_number
from experiments.models import Dataset
from workers import registry
from workers.errors import RequestError, UnknownName
from workers.jobs import plugin_keys
from workers.jobs.laboratory import laboratory
from workers.protocols import LayerInfo
from workers.record.systems import SystemSpec


def system_named(model: str, layer: str, unit: str, dataset: str = "") -> SystemSpec:
    """The system; what kind it is follows from its layer. Raises RequestError if something does not exist."""
    key = plugin_keys.make_absolute(model)
    layers = {info.name: info for info in laboratory().layers(key)}
    if layer not in layers:
        raise UnknownName(f"{model} has no layer {layer!r}. Choose one of: {', '.join(layers)}.")
    info = layers[layer]
    number = unit_number(unit, f"{layer} of {model}", info.units, info.names)
    options = {"dataset": dataset_named(dataset)} if dataset else {}
    return SystemSpec(registry.SYSTEM_OF_LAYER[info.kind], key, layer, number, options)


def layer_of(spec: SystemSpec) -> LayerInfo:
    """What is known of the system's layer. Raises UnknownName if it does not exist."""
    laboratory().check(spec)
    return next(info for info in laboratory().layers(spec.model) if info.name == spec.layer)


def name_of(spec: SystemSpec) -> str:
    """The name of the unit: a class, a concept; "" where units have none. Raises UnknownName."""
    names = layer_of(spec).names
    return names[spec.unit] if spec.unit < len(names) else ""


def dataset_named(name: str) -> str:
    """The key of a dataset, added or not, by its key, name or path. Raises UnknownName, listing what there is."""
    if row := find_dataset(name):
        return row.key
    try:
        return plugin_keys.dataset_key(name)
    except RequestError:
        there = ", ".join(Dataset.objects.values_list("key", flat=True)) or "toybox"
        raise UnknownName(f"There is no dataset or folder {name!r}. Choose one of: {there}.") from None


def find_dataset(name: str) -> Dataset | None:
    """The row of a dataset that was added, by its key, its path or its name."""
    rows = Dataset.objects.all()
    paths = rows.filter(key__in=[f"{family}:{name}" for family in ("folder", "saved", "published")])
    return rows.filter(key=name).first() or paths.first() or rows.filter(label=name).first()
