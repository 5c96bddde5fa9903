"""Save what a dataset shows about a unit, for the pages: figures, exemplars raw and masked, similar units.

Similar units are searched only in indexed layers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils import timezone

from experiments.core import notify, queue
from experiments.core.units_of_runs import find_unit_of
from experiments.models import Dataset, Exemplar, Layer, LayerIndex, Run, Unit, UnitProfile
from experiments.models.mapped import list_map_columns
from workers.errors import Cancelled, MaiaError
from workers.jobs.images import ImagesInDatabase
from workers.jobs.laboratory import laboratory
from workers.lab.memory import keep_map
from workers.protocols import Progress, Provenance
from workers.record.circuits import CIRCUIT
from workers.record.origins import Origin

if TYPE_CHECKING:
    from workers.lab.index_files import UnitStatistics


def write(profile: UnitProfile, progress: Progress) -> None:
    """Save the profile of a unit. Raises the errors of the laboratory, and Cancelled if `progress` does."""
    unit = profile.unit
    spec = unit.spec(profile.dataset.key)
    images = ImagesInDatabase()
    rows = []
    for rank, exemplar in enumerate(laboratory().subject(spec).exemplars(progress), 1):
        raw = images.remember(exemplar.picture.image, Provenance(Origin.EXEMPLAR, scene=exemplar.picture.scene))
        masked = images.remember(exemplar.masked, Provenance(Origin.EXEMPLAR, raw=raw))
        known = list_map_columns(keep_map(images, exemplar.map))
        keys = {"image_id": raw, "masked_id": masked} | known
        rows.append(Exemplar(profile=profile, rank=rank, activation=exemplar.activation, **keys))
    index, place = laboratory().index_of(spec), laboratory().subject(spec).spec
    record = index.unit(place.layer, place.unit)
    # Files and rows of images before the exemplars that refer to them
    images.flush()
    with transaction.atomic():
        # An index of other weights has other exemplars
        profile.exemplars.all().delete()
        Exemplar.objects.bulk_create(rows)
        _note_figures(profile, record)
        profile.written, profile.problem, profile.note = timezone.now(), "", index.note(spec.layer)
        profile.save()
        if spec.kind != CIRCUIT:  # A circuit has its own index
            note_index(profile.dataset, [unit.layer])


def write_layers(dataset: Dataset, model: str, names: Sequence[str], progress: Progress) -> str:
    """Save missing exemplars of all units of these layers. Return a summary. Raises Cancelled if `progress` does."""
    failed = done = 0
    for layer in Layer.objects.select_related("model").filter(model__name=model, name__in=names):
        for number in range(layer.units):
            progress(f"Exemplars of {layer.name}", number, layer.units)
            unit, _ = Unit.objects.get_or_create(layer=layer, number=number)
            profile, _ = UnitProfile.objects.get_or_create(unit=unit, dataset=dataset)
            done += 1
            # What an earlier attempt saved is kept, so a stopped job can resume.
            if profile.written is None:
                failed += not _try(profile, progress)
    return f"Exemplars of {done - failed:,} of {done:,} units are there."


def _try(profile: UnitProfile, progress: Progress) -> bool:
    """Save one unit's exemplars. Return False if that failed; its page shows the reason, and other units continue."""
    try:
        write(profile, progress)
    except Cancelled:
        raise
    except MaiaError as error:
        UnitProfile.objects.filter(pk=profile.pk).update(problem=str(error))
        return False
    return True


def ask_for(run: Run) -> None:
    """Request the exemplars that a run has used for the page of its unit. The index exists by now."""
    dataset = Dataset.objects.filter(key=run.options.get("dataset") or laboratory().settings.dataset).first()
    # The command line works without Redis and without pages.
    if dataset is None or notify.muted.is_set() or (unit := find_unit_of(run)) is None:
        return
    profile, is_new = UnitProfile.objects.get_or_create(unit=unit, dataset=dataset)
    if is_new:
        queue.ask_for("write_exemplars", profile.pk)


def _note_figures(profile: UnitProfile, record: UnitStatistics) -> None:
    """Copy the figures of the index. A published index may lack some."""
    for name in ("quantile", "mean", "maximum", "active"):
        value = float(getattr(record, name))
        # NULL, since JSON and columns hold no NaN.
        setattr(profile, name, value if math.isfinite(value) else None)
    known = record.counts and math.isfinite(record.start)
    profile.histogram = {"start": record.start, "width": record.width, "counts": record.counts} if known else {}


def note_index(dataset: Dataset, layers: list[Layer]) -> None:
    """Record that these layers are indexed over the dataset, and their units that no image activates."""
    for layer in layers:
        row, _ = LayerIndex.objects.get_or_create(dataset=dataset, layer=layer)
        found = laboratory().index(layer.model.name, dataset.key).known([layer.name])
        if row.dead is None and found:
            row.dead = found[layer.name].dead()
            row.save(update_fields=["dead"])


# --- similar units ---


def write_neighbours(profile: UnitProfile) -> None:
    """Save similar units, or the reason why they cannot be compared. Repeated when requested again."""
    # The time of the beginning: an index that is finished meanwhile is not part of it.
    began = timezone.now()
    try:
        profile.neighbours = compare(profile)
    except MaiaError as error:
        profile.neighbours = {"problem": str(error)}
    profile.compared = began
    profile.save(update_fields=["neighbours", "compared"])


def compare(profile: UnitProfile) -> dict[str, Any]:
    """Return the comparison as JSON. Neighbours are [id of the layer, number, similarity, shared exemplars]."""
    from workers.lab.similar_units import SimilarUnit, find_similar_units

    layer, model = profile.unit.layer, profile.unit.layer.model
    indexes = LayerIndex.objects.filter(dataset=profile.dataset, layer__model=model)
    ids = dict(indexes.values_list("layer__name", "layer_id"))
    # Layers whose index has gone are left out.
    known = laboratory().index(model.name, profile.dataset.key).known(list(ids))
    if layer.name not in known:
        return {"problem": f"{layer.name} is not indexed over {profile.dataset.label} any more."}
    found = find_similar_units(known, layer.name, profile.unit.number)

    def rows(neighbours: list[SimilarUnit]) -> list[list[float]]:
        return [[ids[each.layer], each.unit, round(each.similarity, 4), each.shared] for each in neighbours]

    return {
        "measure": found.measure,
        "images": found.images,
        "layers": len(known),
        "same": rows(found.same),
        "others": rows(found.others),
    }
