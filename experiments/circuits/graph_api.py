"""Graphs of circuits in the API: request one, list a circuit's with their results, and compare two circuits."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Field, Query, Router, Schema, Status

from experiments.api.auth import authorize
from experiments.api.cursors import ListPage, Paging, page
from experiments.api.fields import AskedOnceOut, Body, Id, Name, RowOut, Words, find
from experiments.circuits import compare, graph, graph_actions, lists
from experiments.core.actors import Actor
from experiments.core.system_names import SystemNameMasker
from experiments.models import Circuit, CircuitGraph, TokenScope

router = Router(tags=["Circuits"])
GRAPHS = CircuitGraph.objects.select_related("circuit__base", "dataset", "job")


class CircuitGraphIn(Body):
    """The class and dataset for the effects of members."""

    dataset: Name
    target: Words = Field("", description="name or number of a class; empty: the one that the circuit moves most")


class CircuitGraphOut(AskedOnceOut):
    """The effects of a circuit's members on a class, and on each other."""

    circuit: int = Field(validation_alias="circuit_id")
    target: str = Field(description="as it was asked for")
    result: dict[str, Any] = Field(
        description="empty until it is measured; nodes: the members, each with its effect on the logit of the class "
        "(how much it falls when the member is held at its mean); edges: places of two nodes, and how much the later "
        "one's activation falls when the earlier one is held at its mean, over its standard deviation; faithfulness "
        "and completeness of the circuit; all with 95 % intervals over images"
    )


class EstimateOut(RowOut):
    """A figure with its 95 % interval."""

    value: float | None
    low: float | None
    high: float | None
    n: int = Field(description="images")
    why: str = Field(description="why there is no value or no interval")


class ComparedMemberOut(RowOut):
    """A member; effects are null if no graphs of both circuits share class and dataset."""

    model: str = Field(validation_alias="view.member.model")
    layer: str = Field(validation_alias="view.member.layer")
    unit: int = Field(validation_alias="view.member.unit")
    label: str = Field(validation_alias="view.label")
    first: EstimateOut | None = Field(description="its effect on the class, as measured with the first circuit")
    second: EstimateOut | None = Field(description="the same with the second")


class CircuitComparisonOut(RowOut):
    """Two circuits side by side."""

    first: int = Field(validation_alias="first.pk")
    second: int = Field(validation_alias="second.pk")
    similarity: float | None = Field(description="Jaccard's: shared members over all; null for two networks")
    class_name: str = Field(description="that effects are of; empty where nothing of both was measured on one class")
    dataset: str
    shared: list[ComparedMemberOut]
    first_only: list[ComparedMemberOut]
    second_only: list[ComparedMemberOut]


class ComparedCircuits(Schema):
    first: Id
    second: Id


@router.get("/circuits/{pk}/graphs", response=ListPage[CircuitGraphOut], summary="List the graphs of a circuit")
def list_circuit_graphs(request: HttpRequest, pk: Id, paging: Query[Paging]) -> ListPage[CircuitGraphOut]:
    """Newest first."""
    authorize(request)
    rows = graph.list_graphs(find(Circuit.objects.all(), pk=pk))
    return page(request, rows, ["-pk"], paging, CircuitGraphOut.from_orm)


@router.get("/circuit-graphs/{pk}", response=CircuitGraphOut, summary="Read a graph of a circuit")
def read_circuit_graph(request: HttpRequest, pk: Id) -> CircuitGraphOut:
    authorize(request)
    return CircuitGraphOut.from_orm(find(GRAPHS, pk=pk))


@router.post("/circuits/{pk}/graphs", response={202: CircuitGraphOut}, summary="Ask for the graph of a circuit")
def ask_for_circuit_graph(request: HttpRequest, pk: Id, wish: CircuitGraphIn) -> Status[CircuitGraphOut]:
    """Ask a worker to hold each member at its mean and measure the effect on a class and on later members. The same
    question is measured once."""
    actor = Actor.behind(request, authorize(request, graph_actions.ASKS, TokenScope.RUN))
    row = find(lists.list_circuits(), pk=pk)
    return Status(202, CircuitGraphOut.from_orm(graph_actions.ask_for_graph(actor, row, wish.dataset, wish.target)))


@router.get("/circuit-comparisons", response=CircuitComparisonOut, summary="Compare two circuits")
def compare_circuits(request: HttpRequest, asked: Query[ComparedCircuits]) -> CircuitComparisonOut:
    """Compare two circuits: their shared members, and the effects of these on a class that both were measured on."""
    names = SystemNameMasker(authorize(request))
    first, second = (find(lists.list_circuits(), pk=key) for key in (asked.first, asked.second))
    return CircuitComparisonOut.from_orm(compare.compare_circuits(first, second, names))
