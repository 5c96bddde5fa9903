"""The units most like one, over a dataset."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Field, Schema

from experiments.api.entry import allow
from experiments.api.fields import Id, Name, Number
from experiments.api.problems import Refusal
from experiments.core.system_names import Names
from experiments.models import UnitProfile
from experiments.units.api import router, within
from experiments.units.similar import Neighbour, Neighbours, neighbours


class NeighbourOut(Schema):
    """Another unit, and how like it is."""

    layer_id: int
    layer: str
    number: int
    likeness: float
    shared: int = Field(description="exemplars that both have")
    labels: list[str]


class NeighboursOut(Schema):
    """`looking` while a worker has not compared the units yet: read it again in a moment."""

    looking: bool
    measure: str
    images: int = Field(description="that the units were compared over")
    same: list[NeighbourOut] = Field(description="of the same layer, the most alike first")
    others: list[NeighbourOut] = Field(description="of other layers")
    problem: str


NOTHING_YET = Neighbours("", 0, 0, (), ())


@router.get("/layers/{pk}/units/{number}/neighbours", response=NeighboursOut, summary="Read the units most like one")
def read_neighbours(request: HttpRequest, pk: Id, number: Number, dataset: Name) -> NeighboursOut:
    """Needs the unit's exemplars over the dataset: ask for those first."""
    names = Names(allow(request))
    layer = within(pk, number)
    profile = UnitProfile.objects.filter(
        unit__layer=layer, unit__number=number, dataset__key=dataset, written__isnull=False
    ).first()
    if profile is None:
        raise Refusal("missing", f"Unit {number} was not measured over {dataset!r}. Ask for its exemplars with POST.")
    found = neighbours(profile, {each.pk: each for each in layer.model.layers.select_related("model")}, names)
    return shown(found or NOTHING_YET, looking=found is None)


def shown(found: Neighbours, looking: bool) -> NeighboursOut:
    return NeighboursOut(
        looking=looking,
        measure=found.measure,
        images=found.images,
        same=[neighbour_out(each) for each in found.same],
        others=[neighbour_out(each) for each in found.others],
        problem=found.problem,
    )


def neighbour_out(each: Neighbour) -> NeighbourOut:
    return NeighbourOut(
        layer_id=each.layer.pk,
        layer=each.layer.name,
        number=each.number,
        likeness=each.likeness,
        shared=each.shared,
        labels=list(each.labels),
    )
