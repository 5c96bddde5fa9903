"""Measure graphs of circuits as jobs, over the probe images of a dataset, and save the results for the pages."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from experiments.models import CircuitGraph, Job
from workers.circuits.graph import LOOKED, measure_graph
from workers.circuits.tracing import MemberTrace
from workers.errors import MissingPart
from workers.jobs.laboratory import laboratory
from workers.protocols import Progress
from workers.record.circuit_graphs import CircuitGraphReport
from workers.record.decoding import encode


def graph_for(job: Job, progress: Progress) -> str:
    """Run a job of kind "graph"."""
    options: Any = job.options
    rows = CircuitGraph.objects.select_related("circuit", "dataset")
    row = rows.filter(pk=options.get("row")).first()
    if row is None:
        raise MissingPart("This graph was deleted with its circuit or dataset.")
    report = _measure(row, progress)
    row.result, row.measured = encode(report), timezone.now()
    row.save(update_fields=["result", "measured"])
    progress(f"Measured {row}", 1, 1)
    return report.why or f"{row}: {len(report.nodes)} members measured on {report.images:,} images."


def _measure(row: CircuitGraph, progress: Progress) -> CircuitGraphReport:
    """Measure the graph. Raises RequestError, MachineryError, and Cancelled if `progress` does."""
    lab, network, dataset = laboratory(), row.circuit.network, row.dataset.key
    members = row.asked_members
    # Latents are overlays on the network that they explain
    overlays = {key: lab.model(key) for key in {each.model for each in members} if key != network}
    trace = MemberTrace(lab.model(network), overlays, members)
    split = lab.held_out(network, dataset, "probe")
    # The images are the same for every layer of a dataset.
    layer = members[0].layer if members else ""
    positions, _ = split.activations(layer, LOOKED, progress)
    return measure_graph(trace, split.images, positions.tolist(), row.target, lab.settings.batch_size, progress)
