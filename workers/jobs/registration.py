"""What pages and commands ask for: models and datasets of one's own, and indexes of a model over a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User
from django.utils import timezone

from experiments.models import DataSet, Job, Layer, Model
from workers import registry
from workers.errors import MissingPart, UnknownName
from workers.jobs import catalogue, plugin_keys
from workers.jobs.laboratory import laboratory
from workers.jobs.systems import find_data_set
from workers.jobs.unit_profiles import note_index
from workers.protocols import Progress

if TYPE_CHECKING:
    from workers.lab.index_files import Skipped


def model(written: str, by: User | None = None) -> Model:
    """The row of a model, from then on offered by the form; loaded once, to list its layers.

    Raises UnknownName if there is no such model, MissingPart, with the command that gets it, if it is not here.
    """
    key = plugin_keys.model_key(written)
    return catalogue.look_at_model(key, **signed(key in registry.VISION_MODELS, by))


def data_set(key: str, label: str = "", by: User | None = None) -> DataSet:
    """The row of a dataset, from then on offered by the form. Raises UnknownName, MissingPart."""
    return catalogue.look_at_data_set(key, label=label.strip(), **signed(key in registry.DATA_SETS, by))


def signed(named: bool, by: User | None) -> dict[str, Any]:
    """Who added it, and when; nobody adds what the registry names."""
    return {} if named else {"added_by": by, "added": timezone.now()}


def add_model(job: Job, progress: Progress) -> str:
    """What a job of kind "model" does."""
    progress(f"Looking at {job.subject}", 0, 1)
    row = model(job.subject, job.asked_by)
    return f"{row.name} has {row.layers.count()} layers and is in the New query form."


def add_data_set(job: Job, progress: Progress) -> str:
    """What a job of kind "data_set" does."""
    written = job.subject.strip()
    if not written.startswith(("/", "~")) and not plugin_keys.names_plugin(registry.DATA_SETS, written):
        raise UnknownName(f"{written!r} is no full path. Write it from the top, as /data/photographs.")
    progress(f"Counting the images of {written}", 0, 1)
    row = data_set(plugin_keys.data_set_key(written), str(job.options.get("label", "")), job.asked_by)
    return f"{row.label} has {row.images:,} images. Index it for a model here, or let the first query do so."


def index(job: Job, progress: Progress) -> str:
    """Index what the job names; what an earlier attempt has done is not done again."""
    model, names = str(job.options.get("model", "")), list(job.options.get("layers", []))
    insist = bool(job.options.get("insist"))
    return index_layers(known_data_set(job.subject), model, names, progress, insist=insist)


def known_data_set(name: str) -> DataSet:
    """The row of a dataset by its key, its name or its path. Raises UnknownName, listing what there is."""
    if row := find_data_set(name):
        return row
    there = ", ".join(DataSet.objects.values_list("key", flat=True)) or "none yet"
    raise UnknownName(
        f"There is no dataset {name!r}. Choose one of: {there}. Or add it: manage.py data_sets add {name}"
    )


def index_layers(
    data_set: DataSet, model_name: str, names: Sequence[str], progress: Progress, *, insist: bool = False
) -> str:
    """Index these layers, all of the model's if none is named. Returns a sentence on what is there now.

    `insist`: published exemplars are taken, and marked, even if they are of other weights.

    Raises UnknownName, MissingPart, and Cancelled if `progress` does; the same call then goes on where it was.
    """
    row = catalogue.look_at_model(plugin_keys.model_key(model_name))
    layers, left = published_of(data_set, named_layers(row, names))
    made = laboratory().index(row.name, data_set.key)
    made.prepare([layer.name for layer in layers], progress, insist=insist)
    note_index(data_set, layers)
    skipped = made.skipped()
    note_skipped(data_set, skipped)
    rest = f" {skipped.count:,} could not be read and are left out." if skipped.count else ""
    rest += f" Nothing was published of {', '.join(layer.name for layer in left)}, so that is left out." if left else ""
    notes = dict.fromkeys(note for layer in layers if (note := made.note(layer.name)))
    told = f"{row.name} {', '.join(layer.name for layer in layers)}: {data_set.images:,} images indexed.{rest}"
    return " ".join([told, *notes])


def published_of(data_set: DataSet, layers: list[Layer]) -> tuple[list[Layer], list[Layer]]:
    """Of layers, those that a dataset can be indexed for, and the rest; one of plain images can be for all.

    Raises MissingPart if published exemplars are of none of them.
    """
    there: Sequence[str] | None = getattr(laboratory().data_set(data_set.key), "layer_names", None)
    if there is None:
        return layers, []
    if not any(layer.name in there for layer in layers):
        named = ", ".join(layer.name for layer in layers)
        raise MissingPart(f"{data_set.label} has no exemplars of {named}, only of: {', '.join(there)}.")
    return [each for each in layers if each.name in there], [each for each in layers if each.name not in there]


def note_skipped(data_set: DataSet, skipped: Skipped) -> None:
    """Write down which images an index left out."""
    data_set.broken_count = skipped.count
    data_set.broken = [
        {"file": each.file, "reason": each.reason.removeprefix(f"{each.file}: ")} for each in skipped.first
    ]
    data_set.save(update_fields=["broken_count", "broken"])


def named_layers(model: Model, names: Iterable[str]) -> list[Layer]:
    """Raises UnknownName for a layer that the model does not have."""
    layers = {layer.name: layer for layer in model.layers.all()}
    if unknown := [name for name in names if name not in layers]:
        raise UnknownName(f"{model.name} has no layer {unknown[0]!r}. Choose from: {', '.join(layers)}.")
    return [layers[name] for name in names] or list(layers.values())
