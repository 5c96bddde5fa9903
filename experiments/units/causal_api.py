"""Causal checks in the API: request one, and list those of a unit with their results."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Field, Query, Router, Status

from experiments.api.auth import authorize
from experiments.api.cursors import ListPage, Paging, page
from experiments.api.fields import AskedOnceOut, Body, Finite, Id, Name, Number, Whole, Words, find
from experiments.core.actors import Actor
from experiments.models import CausalCheck, Role, TokenScope
from experiments.units import actions
from experiments.units.api import find_layer
from experiments.units.causal import check_question, read_units
from workers.record.causal import CausalQuestion

router = Router(tags=["Units"])
CHECKS = CausalCheck.objects.select_related("layer__model", "dataset", "job")


class CausalCheckIn(Body):
    """Units of a layer that are ablated or scaled together."""

    dataset: Name
    others: Words = Field("", description="units that go with this one, as stretches: 3,5-8", examples=["3,5-8"])
    factor: Finite = Field(0.0, description="of the distance from the reference, 0 to 10: 0 ablates, 2 doubles")
    reference: Words = Field("zero", description="zero, or mean: that of the unit over all places of the images")
    seed: Whole = Field(0, description="of the draw of control units")


class CausalCheckOut(AskedOnceOut):
    """The effect of changed units on the model's output."""

    model: str = Field(validation_alias="layer.model.name")
    layer: str = Field(validation_alias="layer.name")
    units: list[int]
    factor: float
    reference: str
    seed: int
    result: dict[str, Any] = Field(
        description="empty until it is measured; everywhere and most_active: what changes over all probe images, and "
        "over the tenth that activates the units most: divergence from the model's own output, share of images with "
        "the same answer, the classes that fall and rise most, and the same of control units"
    )


@router.get(
    "/layers/{pk}/units/{number}/causal-checks",
    response=ListPage[CausalCheckOut],
    summary="List the causal checks of a unit",
)
def list_causal_checks(request: HttpRequest, pk: Id, number: Number, paging: Query[Paging]) -> ListPage[CausalCheckOut]:
    """Checks that change the unit, alone or with others, newest first."""
    authorize(request)
    layer = find_layer(pk, number)
    rows = CHECKS.filter(changed_units__layer=layer, changed_units__number=number)
    return page(request, rows, ["-pk"], paging, CausalCheckOut.from_orm)


@router.get("/causal-checks/{pk}", response=CausalCheckOut, summary="Read a causal check")
def read_causal_check(request: HttpRequest, pk: Id) -> CausalCheckOut:
    authorize(request)
    return CausalCheckOut.from_orm(find(CHECKS, pk=pk))


@router.post(
    "/layers/{pk}/units/{number}/causal-checks", response={202: CausalCheckOut}, summary="Ask for a causal check"
)
def ask_for_causal_check(request: HttpRequest, pk: Id, number: Number, wish: CausalCheckIn) -> Status[CausalCheckOut]:
    """Ask a worker to change the unit and measure the effect on the model's output. The same question is measured
    once."""
    actor = Actor.behind(request, authorize(request, Role.RESEARCHER, TokenScope.RUN))
    layer = find_layer(pk, number)
    units = read_units(layer, number, wish.others)
    question = check_question(layer, CausalQuestion(units, wish.factor, wish.reference, wish.seed))
    return Status(202, CausalCheckOut.from_orm(actions.ask_for_causal_check(actor, layer, wish.dataset, question)))
