"""Graphs of circuits as jobs: units and latents of toybox, measured on probe images, kept, stopped, refused."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User

from experiments.circuits.graph_actions import ask_for_graph
from experiments.core.actors import Actor
from experiments.models import Circuit, CircuitGraph, Dataset, Job, JobStatus, VisionModelRow
from tests.support.sparse_layers import save_random
from workers.errors import Cancelled
from workers.jobs import long, registration
from workers.record.circuit_graphs import CircuitGraphReport, read_circuit_graph

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("laboratory", "one_thread", "redis_url"),
]


@pytest.fixture
def toybox(laboratory: None) -> VisionModelRow:
    Dataset.objects.create(key="toybox", label="Toybox", available=True, images=500)
    return registration.model("toybox", None)


def put_together(owner: User, network: VisionModelRow, *places: tuple[str, str, int]) -> Circuit:
    """Of (model, layer, unit)."""
    row = Circuit.objects.create(owner=owner, name="toys", network=network.name, base=network)
    for position, (model, layer, number) in enumerate(places, 1):
        found = VisionModelRow.objects.get(name=model).layers.get(name=layer)
        unit = found.unit_set.create(number=number)
        row.members.create(position=position, unit=unit, model=model, layer=layer, number=number)
    return row


def work(graph: CircuitGraph) -> Job:
    assert graph.job is not None
    long.work(graph.job.pk)
    graph.job.refresh_from_db()
    graph.refresh_from_db()
    return graph.job


def measure(owner: User, circuit: Circuit, target: str = "") -> CircuitGraphReport:
    graph = ask_for_graph(Actor(owner), circuit, "toybox", target)
    job = work(graph)
    assert job.status == JobStatus.DONE, job.result
    assert "members measured on" in job.result
    return read_circuit_graph(graph.result)


def test_units_of_two_layers_and_latents(owner: User, toybox: VisionModelRow) -> None:
    save_random(settings.STATE, "few", latents=24)
    registration.model("sae:few", None)
    units = [("toybox", "layer3", 3), ("toybox", "layer3", 5), ("toybox", "layer4", 10), ("sae:few", "layer4", 2)]
    report = measure(owner, put_together(owner, toybox, *units), "ball")
    assert (report.class_name, len(report.nodes)) == ("ball", 4)
    assert {each.source for each in report.edges} <= {0, 1}
    assert any(each.effect.value for each in report.edges)
    assert "units and latents of one layer" in report.faithfulness.why


def test_a_class_is_chosen_where_none_is_named(owner: User, toybox: VisionModelRow) -> None:
    report = measure(owner, put_together(owner, toybox, ("toybox", "layer4", 10), ("toybox", "logits", 0)))
    assert report.was_chosen
    assert report.class_name
    assert [(each.source, each.target) for each in report.edges] == [(0, 1)]


def test_one_that_is_stopped_begins_anew(owner: User, toybox: VisionModelRow) -> None:
    circuit = put_together(owner, toybox, ("toybox", "layer4", 10))
    graph = ask_for_graph(Actor(owner), circuit, "toybox")
    assert graph.job is not None

    def stop(what: str, done: int, total: int) -> None:
        if what.startswith("Holding"):
            raise Cancelled

    status, _ = long.outcome(graph.job, stop)
    Job.objects.filter(pk=graph.job.pk).update(status=status)
    graph.refresh_from_db()
    assert (graph.status, graph.measured, graph.result) == ("stopped", None, {})
    again = ask_for_graph(Actor(owner), circuit, "toybox")
    assert (again.pk, again.job != graph.job, work(again).status) == (graph.pk, True, JobStatus.DONE)


def test_a_network_that_cannot_be_traced_says_so(owner: User, toybox: VisionModelRow, monkeypatch: Any) -> None:
    from workers.toybox.model import ToyboxModel

    monkeypatch.delattr(ToyboxModel, "trace")
    job = work(ask_for_graph(Actor(owner), put_together(owner, toybox, ("toybox", "layer4", 10)), "toybox"))
    assert (job.status, "cannot be read in one layer" in job.result) == (JobStatus.FAILED, True)


def test_one_whose_row_is_gone_says_so(owner: User, toybox: VisionModelRow) -> None:
    job = Job.objects.create(kind="graph", subject="gone", options={"row": 99})
    long.work(job.pk)
    job.refresh_from_db()
    assert (job.status, "graph was deleted" in job.result) == (JobStatus.FAILED, True)
