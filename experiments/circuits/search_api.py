"""Searches for circuits in the API: request, list, read results."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Field, Query, Router, Status

from experiments.api.auth import authorize
from experiments.api.cursors import ListPage, Paging, page
from experiments.api.fields import AskedOnceOut, Body, Id, Name, Whole, Words, find
from experiments.circuits import actions, searches
from experiments.core.actors import Actor
from experiments.models import Layer, TokenScope

router = Router(tags=["Circuits"])


class CircuitSearchIn(Body):
    """A class, and the layer in which to find the units or latents that it depends on."""

    model: Name = Field(examples=["toybox"], description="a network, or sae:NAME for its latents")
    layer: Name = Field(examples=["layer4"])
    target: Name = Field(description="name or number of the class", examples=["car"])
    dataset: Words = Field("", description="key; the model's own if empty")
    images: Whole = Field(100, description="on which the class is seen most, 8 to 500")
    seeds: Whole = Field(3, description="halvings of the images, 1 to 20")


class CircuitSearchOut(AskedOnceOut):
    """The units or latents of a layer that a class depends on."""

    model: str = Field(validation_alias="layer.model.name")
    layer: str = Field(validation_alias="layer.name")
    target: str
    images: int
    seeds: int
    result: dict[str, Any] = Field(
        description="empty until it is measured; curves: faithfulness and completeness by size for each way of finding "
        "a circuit, with intervals over seeds; members: the strongest, with effect on the logit and lift. "
        "`POST /circuits` keeps those that are wanted"
    )


@router.get("/circuit-searches", response=ListPage[CircuitSearchOut], summary="List circuit searches")
def list_circuit_searches(request: HttpRequest, paging: Query[Paging]) -> ListPage[CircuitSearchOut]:
    """Newest first."""
    authorize(request)
    return page(request, searches.list_searches(), ["-pk"], paging, CircuitSearchOut.from_orm)


@router.get("/circuit-searches/{pk}", response=CircuitSearchOut, summary="Read a circuit search")
def read_circuit_search(request: HttpRequest, pk: Id) -> CircuitSearchOut:
    authorize(request)
    return CircuitSearchOut.from_orm(find(searches.list_searches(), pk=pk))


@router.post("/circuit-searches", response={202: CircuitSearchOut}, summary="Look for a circuit")
def search_circuit(request: HttpRequest, wish: CircuitSearchIn) -> Status[CircuitSearchOut]:
    """Ask a worker to find the units of a layer that a class depends on. The same question is measured once."""
    actor = Actor.behind(request, authorize(request, actions.CHANGES, TokenScope.RUN))
    layer = find(Layer.objects.select_related("model"), model__name=wish.model, name=wish.layer)
    dataset = searches.find_dataset(layer, wish.dataset)
    question = searches.CircuitQuestion(wish.target, wish.images, wish.seeds)
    return Status(202, CircuitSearchOut.from_orm(actions.search_circuit(actor, layer, dataset, question)))
