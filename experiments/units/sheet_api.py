"""The units of a layer as its sheet shows them, and the exemplars of all of them."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Field, Query, Router, Schema, Status

from experiments.api.auth import authorize
from experiments.api.fields import Id, Words, find
from experiments.api.filters import read_filters, with_filters
from experiments.core.actors import Actor
from experiments.core.system_names import SystemNameMasker
from experiments.models import Layer, Role, TokenScope
from experiments.units import actions, sheet
from experiments.units.api import Over
from experiments.units.schemes import colour_units, read_scheme
from experiments.units.sheet import SheetFilter
from experiments.units.tiles import UnitTile, make_tiles, read_layer_facts
from experiments.units.unit_ranges import format_ranges

router = Router(tags=["Units"])
MAX_PAGE_SIZE = 200
MAX_REPEATED = 100


class TileOut(Schema):
    """A unit in brief."""

    number: int
    name: str
    label: str = Field(description="the one that stands for the unit: of its newest run that describes it")
    r: float | None = Field(description="of the best check of its labels")
    colour: str = Field(description="of the scheme that was asked for, in words")
    image: str | None = Field(description="its first exemplar")
    masked: str | None
    activation: float | None
    review: str = Field(description="what reviewers made of its newest run with a verdict, in words; empty without one")


class RepeatedLabelOut(Schema):
    """A label that several units of the layer have."""

    label: str = Field(description="in small letters")
    units: int


class SheetOut(Schema):
    count: int = Field(description="units that match")
    numbers: str = Field(description="all that match, as stretches: 0-11,40")
    items: list[TileOut]
    tested: int = Field(description="label checks of the whole layer that tested r against 0")
    beyond_chance: int = Field(
        description="of these, those with r above 0 beyond chance: adjusted p of 0.05 at most (Benjamini and Hochberg)"
    )
    labels: int = Field(description="units of the whole layer with a label")
    unique_labels: int = Field(description="of these, units whose label no other unit has, whatever its capitals")
    repeated_labels: list[RepeatedLabelOut] = Field(description=f"the commonest first, {MAX_REPEATED} at most")


@with_filters(sheet.FILTERS)
class SheetFilters(Schema):
    """The filters of a layer's page."""

    sort: Words | None = Field(None, description="number, score, worst or label")
    start: int = Field(0, ge=0, le=10**9)
    limit: int = Field(100, ge=1, le=MAX_PAGE_SIZE)


@router.get("/layers/{pk}/sheet", response=SheetOut, summary="List the units of a layer")
def list_layer_units(request: HttpRequest, pk: Id, filters: Query[SheetFilters]) -> dict[str, Any]:
    """Every matching unit of the layer, asked about or not."""
    names = SystemNameMasker(authorize(request))
    layer = find(Layer.objects.select_related("model"), pk=pk)
    given, facts = read_filters(filters), read_layer_facts([layer], names)
    colouring = colour_units(read_scheme(given.get("colour", "")), layer.model, [layer], names)
    wanted = sheet.select_units(given, [layer], colouring, names)
    numbers = sheet.list_numbers(layer, wanted, colouring, facts, SheetFilter.of(given))
    # By offset: the order depends on scores, so there is no key to continue from.
    some = numbers[filters.start : filters.start + filters.limit]
    tiles = make_tiles([(layer, number) for number in some], facts)
    known, repeats = colouring.known[layer.pk], facts.repeats
    items = [_tile_out(tile, colouring.say(known.get(tile.number, colouring.rest))) for tile in tiles]
    return {
        "count": len(numbers),
        "numbers": format_ranges(numbers),
        "items": items,
        "tested": facts.tested,
        "beyond_chance": facts.beyond_chance,
        "labels": repeats.labels,
        "unique_labels": repeats.unique,
        "repeated_labels": [{"label": text, "units": count} for text, count in repeats.repeated[:MAX_REPEATED]],
    }


def _tile_out(tile: UnitTile, colour: str) -> TileOut:
    first = tile.pictures[0] if tile.pictures else None
    return TileOut(
        number=tile.number,
        name=tile.name,
        label=tile.label.text if tile.label else "",
        r=tile.r,
        colour=colour,
        image=first.raw if first else None,
        masked=first.masked if first else None,
        activation=tile.activation,
        review=tile.review.words if tile.review else "",
    )


class WorkOut(Schema):
    """The job that computes the exemplars: read it for its progress."""

    job: int
    status: str


@router.post("/layers/{pk}/exemplars", response={202: WorkOut}, summary="Ask for the exemplars of a whole layer")
def ask_for_layer_exemplars(request: HttpRequest, pk: Id, over: Over) -> Status[WorkOut]:
    """Ask a worker to measure every unit of the layer over a dataset. Existing results are kept; asking again is
    harmless."""
    actor = Actor.behind(request, authorize(request, Role.RESEARCHER, TokenScope.RUN))
    job = actions.ask_for_layer(actor, find(Layer.objects.select_related("model"), pk=pk), over.dataset)
    return Status(202, WorkOut(job=job.pk, status=job.status))
