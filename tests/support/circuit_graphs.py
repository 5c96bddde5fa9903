"""Graphs of circuits as a worker writes them down."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from experiments.models import Circuit, CircuitGraph, Dataset
from workers.record.circuit_graphs import CircuitGraphReport, GraphEdge, GraphNode
from workers.record.decoding import encode
from workers.record.estimates import Estimate


def make_graph_report(circuit: Circuit, **changes: Any) -> CircuitGraphReport:
    """The first member speaks for the class, the next against it, others are unclear; an edge from each to each of
    another layer that comes later in the circuit."""
    members = [each.member for each in circuit.members.select_related("unit__layer__model")]
    effects = [Estimate(0.8, 0.6, 1.0, 120), Estimate(-0.3, -0.4, -0.2, 90)]
    effects += [Estimate(0.01, -0.1, 0.12, 80)] * len(members)
    nodes = [
        GraphNode(each.model, each.layer, each.unit, effect, 0.2)
        for each, effect in zip(members, effects, strict=False)
    ]
    edges = [
        GraphEdge(one, two, _vary(one + two))
        for one in range(len(nodes))
        for two in range(one + 1, len(nodes))
        if nodes[one].layer != nodes[two].layer
    ]
    facts: dict[str, Any] = {
        "class_number": 2,
        "class_name": "cone",
        "looked": 500,
        "images": 200,
        "nodes": tuple(nodes),
        "edges": tuple(edges),
        "logit": Estimate(3.1, 2.9, 3.3, 200),
        "all_off": Estimate(1.4, 1.2, 1.6, 200),
        "faithfulness": Estimate(0.71, 0.6, 0.82, 200),
        "completeness": Estimate(0.2, 0.1, 0.3, 200),
    }
    return CircuitGraphReport(**facts | changes)


def _vary(number: int) -> Estimate:
    value = (0.9, -0.5, 0.3, 0.02)[number % 4] / (1 + number // 4)
    reach = 0.05 if abs(value) > 0.05 else 0.06
    return Estimate(value, value - reach, value + reach, 100)


def make_circuit_graph(
    circuit: Circuit, dataset: Dataset, target: str = "", report: CircuitGraphReport | None = None
) -> CircuitGraph:
    """One that was measured."""
    members = list(circuit.members.select_related("unit__layer__model"))
    return CircuitGraph.objects.create(
        circuit=circuit,
        dataset=dataset,
        target=target,
        members=[encode(each.member) for each in members],
        key=CircuitGraph.key_of(circuit, members, dataset, target),
        result=encode(report or make_graph_report(circuit)),
        measured=timezone.now(),
    )
