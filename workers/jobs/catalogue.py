"""Save what a worker finds when it examines the plug-ins, for the pages. Downloads nothing.

Used by `long` at the start of a worker, by `registration` for added models and datasets, and by the commands `models`
and `datasets`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from django import conf
from django.db import transaction

from experiments.models import Backbone, Dataset, Layer, LayerIndex, Run, Toolset, UnitProfile, VisionModelRow
from workers import registry
from workers.errors import MaiaError, MissingPart
from workers.jobs.laboratory import laboratory, plugin_reports
from workers.lab.exemplars import ask_dataset
from workers.plugins.loading import PluginReport, find_origin
from workers.protocols import LabSettings, LayerInfo, Progress, VisionModel, no_progress

log = logging.getLogger(__name__)


def write_all(progress: Progress = no_progress) -> None:
    """Examine every plug-in of the registry, and all added models and datasets. Raises only what `progress` raises."""
    laboratory()  # Plug-ins register their parts here
    work: list[tuple[str, Callable[[str], None]]] = [
        *((key, write_dataset) for key in dataset_keys()),
        *((key, write_backbone) for key in _list_with_rows(registry.BACKBONES, Backbone)),
        *((key, write_toolset) for key in _list_with_rows(registry.TOOLSETS, Toolset)),
        *((key, write_model) for key in model_keys()),
        *((key, look_at_engine) for key in registry.GAME_ENGINES),
    ]
    for done, (key, write) in enumerate(work):
        progress(f"Looking at {key}", done, len(work))
        write(key)
    progress("Looked at everything", len(work), len(work))


def _list_with_rows(known: Iterable[str], kind: type[Backbone | Toolset]) -> list[str]:
    """Return the registry's keys, then keys of plug-ins that were installed once."""
    return list(dict.fromkeys([*known, *kind._default_manager.values_list("key", flat=True)]))


def _name_origin(plugins: Mapping[str, Any], key: str) -> str:
    """Return path and version of the plug-in that registered a part; "" for built-in parts."""
    origin = find_origin(plugins, key)
    return f"{origin.path}, version {origin.version}" if origin else ""


def model_keys() -> list[str]:
    """Return the models of the registry, then the added ones."""
    named = [key for key, _ in registry.choices(registry.VISION_MODELS)]
    return list(dict.fromkeys([*named, *VisionModelRow.objects.values_list("name", flat=True)]))


def dataset_keys() -> list[str]:
    """Return the datasets of the registry, the one of the settings, then the added ones."""
    named = [key for key, _ in registry.choices(registry.DATASETS)]
    added = Dataset.objects.values_list("key", flat=True)
    return list(dict.fromkeys([*named, conf.settings.LAB_DATASET, *added]))


def name_plugin(plugins: registry.Plugins, key: str) -> str:
    """Return the display name of a plug-in; for a member of a family the last part of its key."""
    whole, mark, part = key.partition("#")
    # Whole: a path may hold "#" and "/".
    return registry.label(plugins, key) if key in plugins else whole.rpartition("/")[2] + mark + part or key


# --- models -----------------------------------------------------------------------------------------


def write_model(key: str) -> None:
    """Update the row of a model, and its layers if they are unknown. If the model fails, save the reason."""
    # The row stays, because runs and labels refer to the model
    if remedy := _find_trouble(key, lambda: look_at_model(key)):
        lacks = {"available": False, "remedy": remedy}
        label = name_plugin(registry.VISION_MODELS, key)
        # A row that exists keeps its label, which a person may have changed.
        VisionModelRow.objects.update_or_create(name=key, defaults=lacks, create_defaults=lacks | {"label": label})


def look_at_model(key: str, **added: Any) -> VisionModelRow:
    """Save a model. Models with known layers are not loaded. Raises MissingPart, UnknownName.

    `added` holds fields for a new row: who added it, and when.
    """
    require(registry.VISION_MODELS, key)
    model = laboratory().model(key)
    known = VisionModelRow.objects.filter(name=key, revision=model.revision, layers__isnull=False).exists()
    # Rows of older versions lack the scale
    known = known and not Layer.objects.filter(model__name=key, kind="logit", scale="").exists()
    layers = [] if known else list(model.layers())
    here: dict[str, Any] = {"available": True, "remedy": "", "label": name_plugin(registry.VISION_MODELS, key)}
    here["plugin"] = _name_origin(registry.VISION_MODELS, key)
    if not known:
        # Describe the weights, if the model can
        tell: Callable[[], str] | None = getattr(model, "about", None)
        here |= {"about": tell() if tell else "", "base": getattr(model, "base", "")}
    with transaction.atomic():
        row, _ = VisionModelRow.objects.update_or_create(name=key, defaults=here, create_defaults=here | added)
        if not known:
            _write_layers(row, model, layers)
    return row


def _write_layers(row: VisionModelRow, model: VisionModel, layers: Iterable[LayerInfo]) -> None:
    """Save the layers. Existing layers keep their rows, to which units and labels refer."""
    kept, layers = [], list(layers)
    # Before the loop, which would create a second layer for a renamed one.
    _rename_layers(row, layers)
    # In the order of computation.
    for position, layer in enumerate(layers):
        known = {"position": position, "path": layer.path, "kind": layer.kind, "units": layer.units}
        known |= {"names": list(layer.names), "scale": layer.scale}
        kept.append(Layer.objects.update_or_create(model=row, name=layer.name, defaults=known)[0].pk)
    # Layers that the model lost
    row.layers.exclude(pk__in=kept).delete()
    # Measurements of other weights are not those of this model.
    if row.revision != model.revision:
        UnitProfile.objects.filter(unit__layer__model=row).delete()
        LayerIndex.objects.filter(layer__model=row).delete()
        VisionModelRow.objects.filter(pk=row.pk).update(revision=model.revision)


def _rename_layers(row: VisionModelRow, layers: Iterable[LayerInfo]) -> None:
    """Rename layers whose path is known under another name, so that their units, labels and runs follow."""
    # A known path with another name means that the layer was renamed
    there = {known.path: known for known in row.layers.all()}
    taken = {known.name for known in there.values()}
    for layer in layers:
        known = there.get(layer.path)
        # Only if the new name is free: two layers may have swapped theirs.
        if known and known.name != layer.name and layer.name not in taken:
            Run.objects.filter(model=row.name, layer=known.name).update(layer=layer.name)
            Layer.objects.filter(pk=known.pk).update(name=layer.name)


# --- datasets --------------------------------------------------------------------------------------


def write_dataset(key: str) -> None:
    """Update the row of a dataset. If the dataset fails, save the reason."""
    if remedy := _find_trouble(key, lambda: look_at_dataset(key)):
        lacks = {"available": False, "remedy": remedy}
        label = name_plugin(registry.DATASETS, key)
        Dataset.objects.update_or_create(key=key, defaults=lacks, create_defaults=lacks | {"label": label})


def look_at_dataset(key: str, progress: Progress = no_progress, **added: Any) -> Dataset:
    """Save a dataset. Its images are counted, not decoded.

    Raises MissingPart, also for a dataset without images, UnknownName, and Cancelled if `progress` does.
    """
    require(registry.DATASETS, key)
    dataset = laboratory().dataset(key)
    ask_dataset(dataset, "list_files", progress)
    # Only a label that was given replaces the one in the row.
    named = {"label": label} if (label := added.pop("label", "")) else {}
    # Prefer a count that decodes nothing
    count: Callable[[], int] | None = getattr(dataset, "count", None)
    here = {"available": True, "remedy": "", "images": (count() if count else len(dataset))} | named
    here["plugin"] = _name_origin(registry.DATASETS, key)
    usual: str = getattr(dataset, "title", "") or name_plugin(registry.DATASETS, key)
    fresh = {"label": usual, "revision": dataset.revision} | added
    with transaction.atomic():
        row, _ = Dataset.objects.update_or_create(key=key, defaults=here, create_defaults=fresh | here)
        if row.revision != dataset.revision:  # The images changed, so measurements are out of date
            row.profiles.all().delete()
            row.indexes.all().delete()
            row.revision, row.broken, row.broken_count = dataset.revision, [], 0
            row.save(update_fields=["revision", "broken", "broken_count"])
    return row


# --- backbones and toolsets ------------------------------------------------------------------------


def write_backbone(key: str) -> None:
    def look() -> None:
        require(registry.BACKBONES, key, "")
        registry.list_prices(registry.BACKBONES, key, settings())

    remedy = _find_trouble(key, look)
    found: dict[str, Any] = {"available": not remedy, "remedy": remedy}
    if key in registry.BACKBONES:
        found |= {"label": registry.BACKBONES[key][0], "plugin": _name_origin(registry.BACKBONES, key)}
    # A backbone that cannot be used offers no models.
    found["model_names"] = [] if remedy else registry.list_models(registry.BACKBONES, key, settings())
    found["prices"] = {} if remedy else registry.list_prices(registry.BACKBONES, key, settings())
    Backbone.objects.update_or_create(key=key, defaults=found)


def write_toolset(key: str) -> None:
    if gone := _find_trouble(key, lambda: registry.TOOLSETS[key]):
        Toolset.objects.filter(key=key).update(available=False, remedy=gone)
        return
    tools = registry.TOOLSETS[key]
    parts = (
        (registry.IMAGE_GENERATORS, tools.generator),
        (registry.IMAGE_EDITORS, tools.editor),
        (registry.DESCRIBERS, tools.describer),
    )
    # Parts may miss the same package
    remedy = "\n".join(dict.fromkeys(each for part in parts if (each := find_lack(*part))))
    found = {"label": tools.label, "available": not remedy, "remedy": remedy}
    found["plugin"] = _name_origin(registry.TOOLSETS, key)
    models = [] if remedy else [model for part in parts for model in registry.list_models(*part, settings())]
    found["model_names"] = list(dict.fromkeys(models))
    Toolset.objects.update_or_create(key=key, defaults=found)


def look_at_engine(key: str) -> None:
    """Let a game engine read its files, so that the log and the Workers page name the files it skips."""
    _find_trouble(key, lambda: describe_engine(key))


def describe_engine(key: str = "toybox") -> tuple[str, tuple[str, ...]]:
    """Return what only a game engine can draw, as a sentence or "", and a sentence about each skipped file."""
    engine = laboratory().game_engine(key)
    find: Callable[[], tuple[str, ...]] | None = getattr(engine, "find_problems", None)
    problems = find() if find else ()
    return str(getattr(engine, "extras", "")), problems


# --- what is missing --------------------------------------------------------------------------------


def list_plugins() -> Sequence[PluginReport]:
    """Return a report on each plug-in that the settings and installed packages name."""
    # Reports are filled when the laboratory is built.
    laboratory()
    return plugin_reports


def require(plugins: registry.Plugins, key: str, *arguments: Any) -> None:
    """Raise MissingPart, with the command that installs it, if the plug-in reports something missing."""
    if missing := registry.missing(plugins, key, settings(), *arguments):
        raise MissingPart(missing)


def find_lack(plugins: registry.Plugins, key: str) -> str:
    """Return why a plug-in cannot be used, without loading it; "" if it can."""
    return _find_trouble(key, partial(require, plugins, key))


def _find_trouble(key: str, look: Callable[[], object]) -> str:
    """Return why examining a plug-in fails, "" if it does not."""
    try:
        look()
    except MaiaError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - whatever a plug-in raises, the others are looked at
        log.warning("%s cannot be used: %r", key, error)
        return f"{type(error).__name__}: {error}"
    return ""


def settings() -> LabSettings:
    return laboratory().settings
