"""Search units of all models by what they respond to: the page, and the same API operation."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe
from ninja import Field, Query, Router, Schema

from experiments.api.auth import authorize
from experiments.api.fields import Words
from experiments.core import access
from experiments.core.access import HtmxRequest
from experiments.core.system_names import SystemNameMasker
from experiments.models import Label
from experiments.units import label_nearness, label_search
from experiments.units.label_search import FoundUnit, Meant

MEANT = "by-meaning"
"""The part of the page that waits for a worker; htmx requests it by this id."""
router = Router(tags=["Units"])


@require_safe
def search(request: HtmxRequest) -> HttpResponse:
    """Show units found by the words of their labels; by meaning once a worker has compared them."""
    names = SystemNameMasker(access.require(request))
    typed = request.GET.get("q", "").strip()[: label_nearness.MAX_WORDS_CHARS]
    # First, since the worker can answer while the rest of the page is made.
    meant = label_search.find_by_meaning(typed, names)
    context: dict[str, Any] = {"typed": typed, "meant": meant}
    if request.htmx.target == MEANT:
        return render(request, "units/by_meaning.html", context)
    context |= {
        "found": label_search.find_by_words(typed, names),
        # Without any label the page explains where labels come from, instead of "nothing found".
        "any": Label.objects.exists(),
        "breadcrumbs": [("Units", reverse("units")), ("Units that respond to …", reverse("units-search"))],
    }
    return render(request, "units/search.html", context)


class FoundUnitOut(Schema):
    """A unit with a label near the query."""

    model: str
    layer: str
    layer_id: int
    number: int
    label: str = Field(description="the nearest of its labels")
    nearness: float = Field(description="from 0 to 1")
    r: float | None = Field(description="of the best check of any of its labels")
    image: str | None = Field(description="its first exemplar")


class MeaningOut(Schema):
    waiting: bool = Field(description="whether a worker is still to answer: ask again in a moment")
    problem: str = Field(description="why meanings are not compared")
    units: list[FoundUnitOut]


class UnitsOut(Schema):
    by_words: list[FoundUnitOut]
    by_meaning: MeaningOut


class UnitQuery(Schema):
    q: Words = Field(description="what the units should respond to")


@router.get("/units/search", response=UnitsOut, summary="Find units by what they respond to")
def search_units(request: HttpRequest, asked: Query[UnitQuery]) -> dict[str, Any]:
    """Search the labels of all models: by their words, and by their meaning if a worker can compare that."""
    names = SystemNameMasker(authorize(request))
    meant: Meant = label_search.find_by_meaning(asked.q, names)
    by_meaning = {
        "waiting": meant.waiting,
        "problem": meant.problem,
        "units": list(map(_build_found_unit, meant.found)),
    }
    words = label_search.find_by_words(asked.q, names)
    return {"by_words": list(map(_build_found_unit, words)), "by_meaning": by_meaning}


def _build_found_unit(found: FoundUnit) -> FoundUnitOut:
    tile = found.tile
    return FoundUnitOut(
        model=tile.layer.model.name,
        layer=tile.layer.name,
        layer_id=tile.layer.pk,
        number=tile.number,
        label=found.text,
        nearness=round(found.nearness, 4),
        r=tile.r,
        image=tile.pictures[0].raw if tile.pictures else None,
    )
