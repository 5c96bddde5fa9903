"""Long jobs: writing down what models there are, and the exemplars of a unit for the pages that show them."""

from __future__ import annotations

from celery import shared_task
from django.db import transaction

from experiments import live
from experiments.models import Exemplar, Layer, Model, Unit
from workers import registry
from workers.errors import Cancelled
from workers.jobs import lease
from workers.jobs.images import ImagesInDatabase
from workers.protocols import Provenance, SystemSpec


@shared_task(name="workers.jobs.long.write_catalogue")
def write_catalogue() -> None:
    """Load every registered model and write down its layers. Running it again changes nothing."""
    from workers.jobs.laboratory import laboratory

    for key, (label, _) in registry.VISION_MODELS.items():
        model = laboratory().model(key)
        row, _ = Model.objects.update_or_create(name=key, defaults={"label": label, "revision": model.revision})
        for position, layer in enumerate(model.layers()):
            known = {"position": position, "path": layer.path, "kind": layer.kind, "units": layer.units}
            Layer.objects.update_or_create(model=row, name=layer.name, defaults=known)


@shared_task(name="workers.jobs.long.write_exemplars")
def write_exemplars(unit_id: int) -> None:
    """Write the exemplars of one unit, raw and masked, from the index, which is built if need be."""
    from workers.jobs.laboratory import laboratory

    unit = Unit.objects.select_related("layer__model").get(pk=unit_id)
    if unit.indexed:
        return
    spec = SystemSpec("unit", unit.layer.model.name, unit.layer.name, unit.number)
    images = ImagesInDatabase()
    found = laboratory().subject(spec).exemplars(lambda *progress: report(unit_id, *progress))
    rows = []
    for rank, exemplar in enumerate(found, 1):
        raw = images.remember(exemplar.picture.image, Provenance("exemplar", scene=exemplar.picture.scene))
        masked = images.remember(exemplar.masked, Provenance("exemplar", raw=raw))
        rows.append(Exemplar(unit=unit, rank=rank, activation=exemplar.activation, image_id=raw, masked_id=masked))
    images.flush()
    with transaction.atomic():
        unit.exemplars.all().delete()
        Exemplar.objects.bulk_create(rows)
        unit.indexed = True
        unit.save(update_fields=["indexed"])


def report(unit_id: int, what: str, done: int, total: int) -> None:
    """Progress for the page that waits for the exemplars; ends the work when the worker stops."""
    if lease.stopping.is_set():
        raise Cancelled("The worker stops.")
    if done == total or done % 20 == 0:
        live.report(f"unit:{unit_id}", what, done, total)
