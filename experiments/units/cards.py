"""Show the card of a unit, as a preview of links to it."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from experiments.core import access
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display.label_checks import fetch_checks
from experiments.models import Label, LabelCheck, Layer, Run
from experiments.units.lists import find_layer
from experiments.units.states import UnitState, find_dead_units, state_of
from experiments.units.tiles import UnitTile, read_tiles

PICTURES = 5
KEPT_SECONDS = 60
"""How long a browser caches a card, in seconds."""


@dataclass(frozen=True)
class UnitCard:
    """The card. `check` is the label's; `runs` is the number of runs on the unit."""

    tile: UnitTile
    state: UnitState
    check: LabelCheck | None
    runs: int


@require_safe
@cache_control(private=True, max_age=KEPT_SECONDS)
def show_card(request: HttpRequest, name: str, layer_name: str, number: int) -> HttpResponse:
    """Show the card by itself, for the page that holds the link."""
    names = SystemNameMasker(access.require(request))
    card = _read_card(find_layer(name, layer_name, number), number, names)
    return render(request, "units/card.html", {"card": card, "tile": card.tile})


def _read_card(layer: Layer, number: int, names: SystemNameMasker) -> UnitCard:
    """Return the card's content."""
    (tile,) = read_tiles([(layer, number)], names, PICTURES)
    is_hidden = names.masks_unit(layer.model.name, layer.name, number)
    # Without the default order, since only the set of statuses matters.
    of_unit = visible_to(Run.objects.filter(model=layer.model.name, layer=layer.name, unit=number)).order_by()
    statuses = [] if is_hidden else list(of_unit.values_list("status", flat=True))
    known = {state_of(status) for status in statuses}
    if tile.label:
        known.add(UnitState.LABELLED)
    if number in find_dead_units([layer.pk]).get(layer.pk, set()):
        known.add(UnitState.DEAD)
    # A unit has the first state that applies, in the order of the enum.
    state = min(known, key=tuple(UnitState).index, default=UnitState.NEW)
    return UnitCard(tile, state, _read_check(tile), len(statuses))


def _read_check(tile: UnitTile) -> LabelCheck | None:
    """Return the check of the unit's current label; None if it was never requested."""
    if tile.label is None:
        return None
    row = Label.objects.filter(pk=tile.label.key).prefetch_related(fetch_checks()).first()
    return row.label_check if row else None
