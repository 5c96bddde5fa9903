"""Find circuits of this installation's models: the units or latents of a layer that a class depends on."""

from __future__ import annotations

from typing import Any, cast

from django.utils import timezone

from experiments.core import compatibility
from experiments.models import CircuitSearch, Job
from workers.circuits.finding import CircuitSide, CircuitWish, find_circuit, find_target
from workers.errors import MissingPart, RequestError
from workers.jobs import plugin_keys
from workers.jobs.laboratory import laboratory
from workers.protocols import Progress, RewritableModel
from workers.record.circuits import CircuitReport
from workers.record.decoding import encode

IMAGES = 500
"""Maximum number of images of the probe split."""


def find_for(job: Job, progress: Progress) -> str:
    """Run a job of kind "circuit"."""
    options: Any = job.options
    row = CircuitSearch.objects.select_related("layer__model", "dataset").filter(pk=options.get("row")).first()
    if row is None:
        raise MissingPart("This search was deleted with its model or dataset. Start it again.")
    layer = row.layer
    report = find(layer.model.name, layer.name, row.target, row.dataset.key, row.images, row.seeds, progress)
    row.result, row.measured = encode(report), timezone.now()
    row.save(update_fields=["result", "measured"])
    return report.why or f"{row}: measured on {report.images:,} images."


def find(
    model: str,
    layer: str,
    target: str,
    dataset: str,
    images: int,
    seeds: int,
    progress: Progress,
    *,
    exact: bool = True,
) -> CircuitReport:
    """Find the units or latents that a class depends on, and compare them with controls. Takes keys or names.

    Raises RequestError, MissingPart, and Cancelled if `progress` does.
    """
    lab = laboratory()
    key = plugin_keys.model_key(model)
    studied: Any = lab.model(key)
    place = layer or _find_layer(studied)
    base = str(getattr(studied, "base", ""))
    # The model's own dataset shows its classes.
    data = plugin_keys.dataset_named(dataset or compatibility.find_own_dataset(key))
    if not hasattr(studied, "outputs"):
        raise RequestError(f"{key} has no output of its own that follows from {place}. Choose a classifier.")
    number = find_target(cast("RewritableModel", studied), target)
    side, positions = _read_side(key, place, data, progress)
    # An auto-encoder is compared with plain units of the same layer.
    below = _read_side(base, place, data, progress)[0] if base else None
    split = lab.held_out(key, data, "probe")
    pictures = [split.images[int(at)].image for at in positions]
    return find_circuit(side, below, pictures, CircuitWish(number, images, seeds, exact), progress)


def _find_layer(model: Any) -> str:
    """Return the only layer of an autoencoder. Raises RequestError if there are several, with their names."""
    names = [str(info.name) for info in model.layers() if info.kind != "logit"]
    if len(names) != 1:
        raise RequestError(f"{model.name} has the layers {', '.join(names)}: name one with --layer.")
    return names[0]


def _read_side(key: str, layer: str, dataset: str, progress: Progress) -> tuple[CircuitSide, list[int]]:
    """Return a model with its activations on the probe images, and the positions of these images."""
    lab = laboratory()
    positions, activations = lab.held_out(key, dataset, "probe").activations(layer, IMAGES, progress)
    model: Any = lab.model(key)
    # Without its error term, an autoencoder shows what its latents alone explain
    bare = model.drop_error() if hasattr(model, "drop_error") else None
    return CircuitSide(cast("RewritableModel", model), layer, activations, bare), positions.tolist()
