"""List a layer's units by words, colour and score, in an order; as tiles, and as text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from experiments.api.fields import Words
from experiments.core.params import parse_float
from experiments.core.system_names import SystemNameMasker
from experiments.core.thumbnails import ImageUrls
from experiments.display.narrowing import Filter, index_filters
from experiments.models import Layer
from experiments.units.drawing import UnitSelection
from experiments.units.lists import MAX_WORDS_CHARS, find
from experiments.units.reviewed import ReviewColour
from experiments.units.schemes import Colouring
from experiments.units.states import count_states
from experiments.units.tiles import UnitFacts, UnitTile
from workers.record.figures import figure

SORTS = {"number": "Number", "score": "Score, best first", "worst": "Score, worst first", "label": "Label"}
"""Name in the address -> name on the page."""
FILTERS = index_filters(
    Filter("q", "Words", None, Words, "number, name or words of a label"),
    Filter("colour", "Colours", None, Words, "state, check, review, label or active"),
    Filter("state", "Colour", None, Words, "those of one colour, by its key"),
    Filter("low", "Least r", None, float, "least r"),
    Filter("high", "Most r", None, float, "most r"),
)
"""Of the units of a layer, for its page, layers side by side and the API."""
MAX_LABEL = 90
TILE = (
    '<li class="tile {colour}">{box}<a href="{url}" title="{title}">{picture}'
    '<span class="tile-text"><span class="tile-head"><span class="square" aria-hidden="true"></span>{name}{review}'
    "</span>"
    '<span class="tile-label">{label}</span></span></a><span class="tile-score mono">{score}</span>{near}</li>'
)
PICTURE = '<span class="tile-picture">{}{}</span>'
THUMB = (
    '<img class="{kind}" src="{small}" srcset="{small} 160w, {fine} 320w" sizes="148px" alt="" width="160" height="160"'
    ' loading="lazy" decoding="async">'
)
BOX = '<input type="checkbox" name="unit" value="{number}" form="choose" aria-label="Choose unit {number}">'
# Safe strings, because `format_html` would escape plain ones.
NO_BOX = SafeString("")
REVIEW = (
    '<span class="tile-review {colour}" title="{words}"><span aria-hidden="true">{mark}</span>'
    '<span class="sr-only"> {words}</span></span>'
)
NEAR = (
    '<a class="tile-near" href="{url}" title="The nearest unit of the other side, by {by}">'
    '<span aria-hidden="true">↔</span> <span class="mono">{number}</span> {similarity}</a>'
)
NO_PICTURE = SafeString('<span class="no-picture" aria-hidden="true"></span>')


@dataclass(frozen=True)
class NearUnit:
    """The nearest unit of another layer: its nearness, and how it was compared."""

    url: str
    number: int
    similarity: float
    by: str


@dataclass(frozen=True)
class SheetFilter:
    """Filters of the address besides words and colour. Bounds of r exclude units without r."""

    low: float | None = None
    high: float | None = None
    sort: str = "number"

    @classmethod
    def of(cls, params: Mapping[str, str]) -> SheetFilter:
        sort = params.get("sort", "")
        return cls(parse_float(params.get("low")), parse_float(params.get("high")), sort if sort in SORTS else "number")

    def has(self, r: float | None) -> bool:
        if self.low is None and self.high is None:
            return True
        return r is not None and (self.low is None or r >= self.low) and (self.high is None or r <= self.high)


def select_units(
    params: Mapping[str, str], layers: Sequence[Layer], colouring: Colouring, names: SystemNameMasker
) -> UnitSelection:
    """Return the units that an address selects by words and by one colour."""
    typed = params.get("q", "").strip()[:MAX_WORDS_CHARS]
    state = next((each for each in colouring.colours if each == params.get("state")), None)
    return UnitSelection(state, find(typed, layers, names) if typed else None)


def list_legend(
    given: QueryDict, layers: Sequence[Layer], colouring: Colouring, wanted: UnitSelection
) -> list[dict[str, Any]]:
    """Return each colour with its words, its number of units, and the address that turns its filter on or off."""
    counts, legend = count_states(layers, colouring.known, colouring.rest), []
    for each in colouring.colours:
        address = given.copy()
        # Another filter has other pages: start from the first.
        for name in ("state", "page"):
            address.pop(name, None)
        # The address of the chosen colour lacks it, which turns the filter off.
        if each != wanted.state:
            address["state"] = each.value
        about = {"state": each, "words": colouring.say(each), "count": counts[each], "chosen": each == wanted.state}
        legend.append(about | {"url": f"?{address.urlencode()}"})
    return legend


def list_numbers(
    layer: Layer, wanted: UnitSelection, colouring: Colouring, facts: UnitFacts, asked: SheetFilter
) -> list[int]:
    """Return the selected units in the requested order; those without a score, or a label, come last."""
    known = colouring.known[layer.pk]
    meant = [
        number
        for number in range(layer.units)
        if wanted.has(layer.pk, number, known.get(number, colouring.rest))
        and asked.has(facts.scores.get((layer.pk, number)))
    ]
    if asked.sort in {"score", "worst"}:
        sign = -1 if asked.sort == "score" else 1
        # A unit without a score gets infinity in both orders, so that it comes last.
        return sorted(meant, key=lambda number: sign * facts.scores.get((layer.pk, number), sign * math.inf))
    if asked.sort == "label":
        return sorted(meant, key=lambda number: _fold_label(facts, layer, number))
    return meant


def _fold_label(facts: UnitFacts, layer: Layer, number: int) -> tuple[bool, str]:
    label = facts.labels.get((layer.pk, number))
    return label is None, label.text.casefold() if label else ""


def draw_tiles(
    tiles: Sequence[UnitTile], colouring: Colouring, base: str, near: Mapping[int, NearUnit] | None = None
) -> SafeString:
    """Draw the tiles of one layer, whose address is `base`; beside another layer, each with its nearest there, by
    number."""
    # Not a template: that takes ten times as long for hundreds of tiles.
    return format_html_join("", "{}", ((_draw_tile(tile, colouring, base, near),) for tile in tiles))


def _draw_tile(tile: UnitTile, colouring: Colouring, base: str, near: Mapping[int, NearUnit] | None) -> SafeString:
    colour = colouring.known[tile.layer.pk].get(tile.number, colouring.rest)
    label = tile.label.text if tile.label else ""
    return format_html(
        TILE,
        colour=colour.value,
        url=f"{base}{tile.number}/",
        title=f"Unit {tile.number}: {label or 'no label'} · {colouring.say(colour)}",
        picture=_draw_picture(tile),
        name=f"{tile.number} {tile.name}" if tile.name else f"{tile.number}",
        review=_draw_review(tile.review),
        label=label[:MAX_LABEL],
        # Side by side there is no form that the boxes could belong to.
        box=NO_BOX if near is not None else format_html(BOX, number=tile.number),
        near=_draw_near(near.get(tile.number) if near else None),
        score="" if tile.r is None else f"r {figure(tile.r)}",
    )


def _draw_picture(tile: UnitTile) -> SafeString:
    """Draw the first exemplar, masked and raw: the style sheet shows one of them, and the browser loads only that
    one."""
    if not tile.pictures:
        return NO_PICTURE
    first = tile.pictures[0]
    kinds = (("masked", ImageUrls.of(first.masked)), ("raw", ImageUrls.of(first.raw)))
    return format_html(PICTURE, *(format_html(THUMB, kind=kind, small=at.small, fine=at.fine) for kind, at in kinds))


def _draw_review(review: ReviewColour | None) -> SafeString:
    """Draw its mark, with the words beside it for people who cannot see it."""
    if review is None:
        return NO_BOX
    return format_html(REVIEW, colour=review.value, words=review.words, mark=review.mark)


def _draw_near(near: NearUnit | None) -> SafeString:
    if near is None:
        return NO_BOX
    return format_html(NEAR, url=near.url, by=near.by, number=near.number, similarity=figure(near.similarity))
