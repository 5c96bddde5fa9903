"""Register models and datasets, and index models over datasets, for pages and commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from experiments.models import Dataset, Job, Layer, VisionModelRow
from workers import registry
from workers.errors import MissingPart, UnknownName
from workers.jobs import catalogue, plugin_keys
from workers.jobs.laboratory import laboratory
from workers.jobs.plugin_keys import find_dataset
from workers.jobs.unit_profiles import note_index, write_layers
from workers.protocols import Progress, no_progress


def model(written: str, by: User | None = None) -> VisionModelRow:
    """Return the row of a model, and offer it in the New run form. The model is loaded once to list its layers.

    Raises UnknownName if it does not exist, MissingPart with the download command if it is not here.
    """
    key = plugin_keys.model_key(written)
    return catalogue.look_at_model(key, **sign(key in registry.VISION_MODELS, by))


def dataset(key: str, label: str = "", by: User | None = None, progress: Progress = no_progress) -> Dataset:
    """Return the row of a dataset, and offer it in the New run form. Raises UnknownName, MissingPart, Cancelled."""
    return catalogue.look_at_dataset(key, progress, label=label.strip(), **sign(key in registry.DATASETS, by))


def sign(named: bool, by: User | None) -> dict[str, Any]:
    """Return who added it and when; empty for keys of the registry."""
    return {} if named else {"added_by": by, "added": timezone.now()}


def add_model(job: Job, progress: Progress) -> str:
    """Run a job of kind "model"."""
    progress(f"Looking at {job.subject}", 0, 1)
    row = model(job.subject, job.asked_by)
    return f"{row.name} has {row.layers.count()} layers and is in the New run form."


def add_dataset(job: Job, progress: Progress) -> str:
    """Run a job of kind "dataset"."""
    written = job.subject.strip()
    # Workers run in another folder than the user's terminal
    if not written.startswith(("/", "~")) and not plugin_keys.names_plugin(registry.DATASETS, written):
        raise UnknownName(f"{written!r} is not an absolute path. Write one such as /data/photographs.")
    progress(f"Counting the images of {written}", 0, 1)
    key = plugin_keys.dataset_key(written, follow_links=bool(job.options.get("follow_links")))
    row = dataset(key, str(job.options.get("label", "")), job.asked_by, progress)
    return f"{row.label} has {row.images:,} images. Index it for a model here, or let the first query do so."


def index(job: Job, progress: Progress) -> str:
    """Run a job of kind "index". Layers from an earlier attempt are not indexed again."""
    model, names = str(job.options.get("model", "")), list(job.options.get("layers", []))
    insist = bool(job.options.get("insist"))
    dataset = get_dataset(job.subject)
    said = index_layers(dataset, model, names, progress, insist=insist)
    return f"{said} {write_layers(dataset, model, names, progress)}" if job.options.get("exemplars") else said


def get_dataset(name: str) -> Dataset:
    """Return the row of a dataset by key, name or path. Raises UnknownName with the known ones."""
    if row := find_dataset(name):
        return row
    there = ", ".join(Dataset.objects.values_list("key", flat=True)) or "none yet"
    raise UnknownName(f"There is no dataset {name!r}. Choose one of: {there}. Or add it: manage.py datasets add {name}")


def index_layers(
    dataset: Dataset, model_name: str, names: Sequence[str], progress: Progress, *, insist: bool = False
) -> str:
    """Index these layers, or all layers of the model. Return a summary.

    With `insist`, published exemplars of other weights are used, and marked.

    Raises UnknownName, MissingPart, and Cancelled if `progress` does; the same call then resumes.
    """
    row = catalogue.look_at_model(plugin_keys.model_key(model_name))
    layers, left = _published_of(dataset, _find_layers(row, names))
    made = laboratory().index(row.name, dataset.key)
    # Saves each finished part, so that a stopped job can resume
    made.prepare([layer.name for layer in layers], progress, insist=insist)
    note_index(dataset, layers)
    skipped = made.skipped()
    # Record the images that the index skipped
    dataset.broken_count = skipped.count
    dataset.broken = [
        {"file": each.file, "reason": each.reason.removeprefix(f"{each.file}: ")} for each in skipped.first
    ]
    dataset.save(update_fields=["broken_count", "broken"])
    rest = f" {skipped.count:,} files are left out." if skipped.count else ""
    rest += f" Nothing was published of {', '.join(layer.name for layer in left)}, so that is left out." if left else ""
    notes = dict.fromkeys(note for layer in layers if (note := made.note(layer.name)))
    images = len(laboratory().dataset(dataset.key)) - skipped.count
    words = f"{row.name} {', '.join(layer.name for layer in layers)}: {images:,} images indexed.{rest}"
    return " ".join([words, *notes])


def _published_of(dataset: Dataset, layers: list[Layer]) -> tuple[list[Layer], list[Layer]]:
    """Split layers into those that a dataset can be indexed for, and the rest. A dataset of plain images fits all
    layers.

    Raises MissingPart if published exemplars fit none of them.
    """
    there: Sequence[str] | None = getattr(laboratory().dataset(dataset.key), "layer_names", None)
    if there is None:
        return layers, []
    if not any(layer.name in there for layer in layers):
        named = ", ".join(layer.name for layer in layers)
        raise MissingPart(f"{dataset.label} has no exemplars of {named}, only of: {', '.join(there)}.")
    return [each for each in layers if each.name in there], [each for each in layers if each.name not in there]


def _find_layers(model: VisionModelRow, names: Iterable[str]) -> list[Layer]:
    """Return the named layers, or all. Raises UnknownName for a missing one."""
    layers = {layer.name: layer for layer in model.layers.all()}
    if unknown := [name for name in names if name not in layers]:
        raise UnknownName(f"{model.name} has no layer {unknown[0]!r}. Choose from: {', '.join(layers)}.")
    return [layers[name] for name in names] or list(layers.values())
