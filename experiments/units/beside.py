"""Show two layers side by side, of one model or two: their units with the same filter and colours, and each unit's
nearest on the other side, by correlation if a worker has compared them, else by label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from experiments.core import access
from experiments.core.paging import Page
from experiments.core.system_names import SystemNameMasker
from experiments.models import Layer, UnitProfile
from experiments.units import sheet
from experiments.units.addresses import encode_name
from experiments.units.label_groups import read_words
from experiments.units.schemes import SCHEMES, colour_layers, read_scheme
from experiments.units.sheet import NearUnit, SheetFilter
from experiments.units.tiles import UnitFacts, make_tiles, read_layer_facts

SIDES = ("left", "right")
PER_PAGE = 60
"""Tiles of each side on a page."""
KEPT = (*SIDES, *sheet.FILTERS, "sort")
ALIKE = 0.5
"""Minimum share of common words for labels to be near."""


@dataclass(frozen=True)
class ComparedLayer:
    """One of the two layers: its tiles on this page, and how many of its units match."""

    layer: Layer
    tiles: SafeString
    count: int
    url: str


@require_safe
def beside(request: HttpRequest) -> HttpResponse:
    """Show the two layers, or the choices."""
    names = SystemNameMasker(access.require(request))
    layers = list(Layer.objects.select_related("model").order_by("model__name", "position"))
    by_key = {key_of(each): each for each in layers}
    asked = [by_key.get(request.GET.get(side, "")) for side in SIDES]
    context: dict[str, Any] = {
        "choices": list(by_key.items()),
        "chosen": [(side, key_of(each) if each else "") for side, each in zip(SIDES, asked, strict=True)],
        "schemes": SCHEMES.items(),
        "breadcrumbs": [("Units", reverse("units")), ("Side by side", reverse("units-beside"))],
    }
    both = [each for each in asked if each]
    if len(both) == len(SIDES):
        context |= _read_both(request, both, names)
    return render(request, "units/beside.html", context)


def key_of(layer: Layer) -> str:
    """Return a layer in the form of the address."""
    return f"{encode_name(layer.model.name)}/{encode_name(layer.name)}"


def _read_both(request: HttpRequest, both: Sequence[Layer], names: SystemNameMasker) -> dict[str, Any]:
    """Return each side, and what they share."""
    colouring = colour_layers(read_scheme(request.GET.get("colour", "")), both, names)
    wanted = sheet.select_units(request.GET.dict(), both, colouring, names)
    asked = SheetFilter.of(request.GET.dict())
    facts = read_layer_facts(both, names)
    numbers = [sheet.list_numbers(each, wanted, colouring, facts, asked) for each in both]
    # Both sides turn pages together, so the longer one decides how many there are.
    page = Page.of(request.GET.dict(), max(map(len, numbers)), PER_PAGE, *KEPT)
    sides = []
    for at, layer in enumerate(both):
        # `1 - at` is the other side.
        some = numbers[at][page.start : page.end]
        near = _find_nearest(layer, some, both[1 - at], facts)
        url = reverse("units-layer", args=[layer.model.name, layer.name])
        tiles = make_tiles([(layer, number) for number in some], facts)
        sides.append(ComparedLayer(layer, sheet.draw_tiles(tiles, colouring, url, near), len(numbers[at]), url))
    return {
        "sides": sides,
        "page": page,
        "typed": request.GET.get("q", "").strip(),
        "state": wanted.state,
        "asked": asked,
        "sorts": sheet.SORTS.items(),
        "colouring": colouring,
        "legend": sheet.list_legend(request.GET, both, colouring, wanted),
        "kept": {side: request.GET[side] for side in SIDES},
    }


def _find_nearest(layer: Layer, numbers: Sequence[int], other: Layer, facts: UnitFacts) -> Mapping[int, NearUnit]:
    """Return by number the nearest unit of the other layer: by correlation, else by the words of its label."""
    url = reverse("units-layer", args=[other.model.name, other.name])
    rows = UnitProfile.objects.filter(unit__layer=layer, unit__number__in=numbers, compared__isnull=False)
    found: dict[int, NearUnit] = {}
    for number, neighbours in rows.values_list("unit__number", "neighbours"):
        kinds = neighbours.get("same", []) + neighbours.get("others", [])
        # Rows are [layer, number, similarity, shared]. With one layer on both sides, the same number is the unit
        # itself.
        near = [(row[2], row[1]) for row in kinds if row[0] == other.pk and row[1] != number]
        if near:
            similarity, nearest = max(near)
            found[number] = NearUnit(f"{url}{nearest}/", int(nearest), similarity, "correlation")
    # Units without a computed neighbour there fall back on labels.
    theirs = [(read_words(label.text), n) for (pk, n), label in facts.labels.items() if pk == other.pk]
    for number in numbers:
        label = facts.labels.get((layer.pk, number))
        if label is None or number in found:
            continue
        words = read_words(label.text)
        # The number is negative, so that of equally near labels `max` takes the lowest unit.
        here = [(_compare(words, said), -n) for said, n in theirs if (other.pk, n) != (layer.pk, number)]
        alike, nearest = max(here, default=(0.0, 0))
        if alike >= ALIKE:
            found[number] = NearUnit(f"{url}{-nearest}/", -nearest, alike, "label")
    return found


def _compare(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0
