"""Run causal checks as jobs, over the probe images of a dataset, and save the results for the pages."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from experiments.models import CausalCheck, Job
from workers.causal.measuring import MAX_IMAGES, check_question, measure_causal_effect
from workers.errors import MissingPart
from workers.jobs.laboratory import laboratory
from workers.protocols import Progress
from workers.record.causal import CausalReport
from workers.record.decoding import encode


def check_for(job: Job, progress: Progress) -> str:
    """Run a job of kind "causal"."""
    options: Any = job.options
    row = CausalCheck.objects.select_related("layer__model", "dataset").filter(pk=options.get("row")).first()
    if row is None:
        raise MissingPart("This causal check was deleted with its model or dataset. Start it again.")
    report = _measure(row, progress)
    row.result, row.measured = encode(report), timezone.now()
    row.save(update_fields=["result", "measured"])
    progress(f"Measured {row}", 1, 1)
    return report.why or f"{row}: measured on {report.everywhere.images:,} images."


def _measure(row: CausalCheck, progress: Progress) -> CausalReport:
    """Measure the effect. Raises RequestError, MachineryError, MissingPart, and Cancelled if `progress` does."""
    lab, layer, dataset = laboratory(), row.layer, row.dataset.key
    model = lab.model(layer.model.name)
    try:
        check_question(model, layer.name, row.question)
    except MissingPart as error:
        # Saved, so that the page says why without a second attempt.
        row.impossible = str(error)
        row.save(update_fields=["impossible"])
        raise
    # The probe, since units were labelled by their exemplars.
    split = lab.held_out(layer.model.name, dataset, "probe")
    positions, activations = split.activations(layer.name, MAX_IMAGES, progress)
    batch = lab.settings.batch_size
    return measure_causal_effect(
        model, layer.name, row.question, split.images, positions.tolist(), activations, batch, progress
    )
