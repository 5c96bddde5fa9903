"""What a dataset says of one unit, written down for the pages: its figures, and its exemplars raw and masked."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from experiments.core import notify, queue
from experiments.models import DataSet, Exemplar, Index, Layer, Profile, Run, Unit
from workers import registry
from workers.jobs.images import ImagesInDatabase
from workers.jobs.laboratory import laboratory
from workers.protocols import Progress, Provenance, SystemSpec

if TYPE_CHECKING:
    from workers.lab.index_files import UnitRecord


def write(profile: Profile, progress: Progress) -> None:
    """Raises what the laboratory raises, among it Cancelled if `progress` does; then nothing is written."""
    unit = profile.unit
    spec = spec_of(unit.layer, unit.number, profile.data_set)
    images = ImagesInDatabase()
    rows = []
    for rank, exemplar in enumerate(laboratory().subject(spec).exemplars(progress), 1):
        raw = images.remember(exemplar.picture.image, Provenance("exemplar", scene=exemplar.picture.scene))
        masked = images.remember(exemplar.masked, Provenance("exemplar", raw=raw))
        rows.append(
            Exemplar(profile=profile, rank=rank, activation=exemplar.activation, image_id=raw, masked_id=masked)
        )
    index = laboratory().index(spec.model, profile.data_set.key)
    record = index.unit(spec.layer, spec.unit)
    images.flush()
    with transaction.atomic():
        profile.exemplars.all().delete()
        Exemplar.objects.bulk_create(rows)
        note_figures(profile, record)
        profile.written, profile.problem, profile.note = timezone.now(), "", index.note(spec.layer)
        profile.save()
        note_index(profile.data_set, [unit.layer])


def ask_for(run: Run) -> None:
    """Have the page of the run's unit show the exemplars that the run has looked at; its index is there by now."""
    layer = Layer.objects.filter(model__name=run.model, name=run.layer, units__gt=run.unit).first()
    data_set = DataSet.objects.filter(key=run.options.get("data_set") or laboratory().settings.data_set).first()
    if layer is None or data_set is None or notify.muted.is_set():
        return
    unit, _ = Unit.objects.get_or_create(layer=layer, number=run.unit)
    profile, is_new = Profile.objects.get_or_create(unit=unit, data_set=data_set)
    if is_new:
        queue.ask_for_exemplars(profile.pk)


def note_figures(profile: Profile, record: UnitRecord) -> None:
    """What the index knows of the unit; of what was published by others it may not know all."""
    for name in ("quantile", "mean", "maximum", "active"):
        value = float(getattr(record, name))
        setattr(profile, name, value if math.isfinite(value) else None)
    known = record.counts and math.isfinite(record.start)
    profile.histogram = {"start": record.start, "width": record.width, "counts": record.counts} if known else {}


def spec_of(layer: Layer, number: int, data_set: DataSet) -> SystemSpec:
    """The system that a unit of a layer is studied as, over this dataset."""
    kind = registry.SYSTEM_OF_LAYER[layer.kind]
    return SystemSpec(kind, layer.model.name, layer.name, number, {"data_set": data_set.key})


def note_index(data_set: DataSet, layers: list[Layer]) -> None:
    """Remember that these layers are indexed over the dataset, and which of their units no image activates."""
    for layer in layers:
        row, _ = Index.objects.get_or_create(data_set=data_set, layer=layer)
        found = laboratory().index(layer.model.name, data_set.key).known([layer.name])
        if row.dead is None and found:
            row.dead = found[layer.name].dead()
            row.save(update_fields=["dead"])
