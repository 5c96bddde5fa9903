"""Existing labels of one or several sources: each is tested on new images."""

from __future__ import annotations

from experiments.models import Evaluation, EvaluationItem, Unit
from experiments.pairwise import sources
from workers.jobs.evaluations.evaluation_type import EvaluationType, require
from workers.jobs.evaluations.pooled import compare_pooled
from workers.jobs.evaluations.units import summarise
from workers.protocols import Progress


def _plan(evaluation: Evaluation, progress: Progress) -> list[EvaluationItem]:
    """Plan all units that a source labels, optionally of one model and of some layers. Missing labels are shown as
    missing."""
    del progress
    options = evaluation.options
    keys = [str(each) for each in options.get("sources") or []]
    require(keys, "a source of labels")
    # Circuits are units too, and no source labels these.
    rows = Unit.objects.filter(members__isnull=True).select_related("layer__model")
    units = rows.order_by("layer__position", "number")
    if options.get("model"):
        units = units.filter(layer__model__name=options["model"])
    if options.get("layers"):
        units = units.filter(layer__name__in=options["layers"])
    known = sources.labels_of(units, keys)
    # In the catalogue's order, so that a smaller number gives the first of a larger one.
    chosen = [unit for unit in units if unit.pk in known][: int(options.get("units") or 0) or None]
    return [
        EvaluationItem(
            group=unit.layer.name,
            source=key,
            unit=unit,
            unit_name=f"{unit.layer.model.name} / {unit.layer.name} / unit {unit.number}",
        )
        for unit in chosen
        for key in keys
    ]


EVALUATION_TYPE = EvaluationType(_plan, summarise, finish=compare_pooled)
