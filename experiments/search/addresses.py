"""Where what was found stands: addresses of events, units and pictures. Pages that do not exist have none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.urls import NoReverseMatch, reverse

from experiments.models import Adjudication, Review, SearchText
from experiments.models.search_text import OPINIONS, TextKind

THUMBNAIL = 160


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
        return of_unit(passage.model, passage.layer, passage.unit)
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


def of_unit(model: str, layer: str, unit: int) -> str:
    return address("unit", model, layer, unit)


def of_thumbnail(key: str) -> str:
    return address("thumbnail", key, THUMBNAIL) or address("image", key)
