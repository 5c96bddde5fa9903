"""A page of passages as it is shown: gathered by run, each with its snippet and a link to where it stands: addresses of
events, units and pictures. Pages that do not exist have none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.urls import NoReverseMatch, reverse

from experiments.models import Adjudication, Observation, Review, Run, SearchText
from experiments.models.search_text import OPINIONS, TextKind
from experiments.search.finding import Found
from experiments.search.snippets import Piece, snippet

OF_IMAGES = frozenset({TextKind.TITLE, TextKind.TAG})
THUMBNAIL = 160
SHOWN = 6
"""Hits of one run on a page; the others are counted."""


@dataclass(frozen=True)
class Hit:
    """One passage. `image` is the address of the picture it is the title of."""

    kind: str
    label: str
    place: str
    url: str
    pieces: Sequence[Piece]
    image: str = ""


@dataclass
class HitGroup:
    """The hits in one run, or the labels of one unit that no run has given."""

    passage: SearchText
    hits: list[Hit] = field(default_factory=list)
    more: int = 0

    @property
    def run(self) -> Run | None:
        return self.passage.run

    def add(self, hit: Hit) -> None:
        """Titles of many images may read the same: one of them stands for all."""
        known = [(other.kind, other.place, other.pieces) for other in self.hits]
        if (hit.kind, hit.place, hit.pieces) in known or len(known) >= SHOWN:
            self.more += 1
        else:
            self.hits.append(hit)


def group_hits(found: Found, terms: Sequence[str]) -> list[HitGroup]:
    """The groups of a page, in the order of their first hits."""
    rows = SearchText.objects.select_related("run").in_bulk(found.keys)
    passages = [rows[key] for key in found.keys if key in rows]
    places = of_passages(passages)
    # The images that passages are the titles or tags of, by observation
    anchors = [passage.anchor for passage in passages if passage.kind in OF_IMAGES and passage.anchor]
    logged = Observation.objects.filter(pk__in=anchors).values_list("pk", "masked_id", "image_id")
    images = {pk: masked or image for pk, masked, image in logged}
    groups: dict[tuple[int | str | None, ...], HitGroup] = {}
    for passage in passages:
        system = (passage.run_id,) if passage.run_id else (passage.model, passage.layer, passage.unit)
        group = groups.setdefault(system, HitGroup(passage))
        group.add(hit_of(passage, terms, images, places[passage.pk]))
    return list(groups.values())


def hit_of(passage: SearchText, terms: Sequence[str], images: Mapping[int, str], url: str) -> Hit:
    kind, key = TextKind(passage.kind), images.get(passage.anchor or 0)
    return Hit(
        kind=kind,
        label=str(kind.label),
        place=place_of(passage),
        url=url,
        pieces=snippet(passage.text, terms),
        image=address("thumbnail", key, THUMBNAIL) if kind in OF_IMAGES and key else "",
    )


def place_of(passage: SearchText) -> str:
    """Where in the run it stands, in words."""
    if passage.kind == TextKind.TAG:
        return "of an image" if passage.anchor else "of an experiment" if passage.seq else "of the run"
    if passage.kind in {TextKind.REPLY, TextKind.HYPOTHESIS, TextKind.NOTE} and passage.anchor:
        return f"round {passage.anchor}"
    if passage.kind in {TextKind.CODE, TextKind.OUTPUT} and passage.anchor:
        return f"experiment {passage.anchor}"
    return ""


# --- where it stands --------------------------------------------------------------------------------


def address(name: str, *arguments: object) -> str:
    """A page's address; "" while there is no such page."""
    try:
        return reverse(name, args=arguments)
    except NoReverseMatch:
        return ""


def of_passages(passages: Iterable[SearchText]) -> Mapping[int, str]:
    """By key where each stands: its event; for a label that no run has given, its unit; for what somebody said of a
    run, the comment, or the item that was reviewed. Passages come with their runs."""
    rows = list(passages)
    items = items_of(rows)
    return {row.pk: items.get((row.kind, row.anchor)) or of_passage(row) for row in rows}


def of_passage(passage: SearchText) -> str:
    if passage.run is None:
        return address("unit", passage.model, passage.layer, passage.unit)
    if passage.kind == TextKind.COMMENT and passage.anchor:
        return address("comment", passage.anchor)
    if passage.kind in OPINIONS:  # what came with an import stands among the comments
        return f"{passage.run.get_absolute_url()}?tab=comments"
    # The event on its run's page, also where the page of a long run shows a part; the page for a question
    page = passage.run.get_absolute_url()
    return f"{page}?at={passage.seq}#e{passage.seq}" if passage.seq else page


def items_of(passages: Iterable[SearchText]) -> Mapping[tuple[str, int | None], str]:
    """Kind and key of reviews and final verdicts -> the page of their items."""
    keys = {(row.kind, row.anchor) for row in passages}
    found: dict[tuple[str, int | None], str] = {}
    for kind, model in ((TextKind.REVIEW, Review), (TextKind.FINAL, Adjudication)):
        if wanted := [key for of, key in keys if of == kind and key]:
            rows = model._default_manager.filter(pk__in=wanted).values_list("pk", "item__queue", "item__position")
            found |= {(str(kind), pk): address("review-item", queue, place) for pk, queue, place in rows}
    return found
