"""Show a page of passages, grouped by run, each with its snippet and a link to its event, unit or picture. Missing
pages get no link."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from django.urls import NoReverseMatch, reverse

from experiments.core.search_index.normalize import normalized_with_places
from experiments.models import Adjudication, Observation, Review, Run, SearchText
from experiments.models.search_text import OPINIONS, TextKind
from experiments.search.finding import Found

OF_IMAGES = frozenset({TextKind.TITLE, TextKind.TAG})
THUMBNAIL = 160
MAX_HITS_OF_RUN = 6
"""Hits of one run on a page; the others are counted."""
LENGTH, BEFORE = 280, 60
"""Characters of a snippet, and of those before its first hit."""
MAX_MARKS = 40
"""Maximum marked hits in one snippet."""

Span = tuple[int, int]
Piece = tuple[str, bool]


@dataclass(frozen=True)
class Hit:
    """One passage. `image` is the address of the picture whose title it is."""

    kind: str
    label: str
    place: str
    url: str
    pieces: Sequence[Piece]
    image: str = ""


@dataclass
class HitGroup:
    """The hits in one run, or the labels of one unit that are not from runs."""

    passage: SearchText
    hits: list[Hit] = field(default_factory=list)
    more: int = 0

    @property
    def run(self) -> Run | None:
        return self.passage.run

    @property
    def texts(self) -> list[Hit]:
        return [hit for hit in self.hits if not hit.image]

    @property
    def pictures(self) -> list[Hit]:
        """Return the hits that are text about an image."""
        return [hit for hit in self.hits if hit.image]

    def add(self, hit: Hit) -> None:
        """Add a hit. Many images may have the same title: one represents all."""
        known = [(other.kind, other.place, other.pieces) for other in self.hits]
        if (hit.kind, hit.place, hit.pieces) in known or len(known) >= MAX_HITS_OF_RUN:
            self.more += 1
        else:
            self.hits.append(hit)


def group_hits(found: Found, terms: Sequence[str]) -> list[HitGroup]:
    """Return the groups of a page, in the order of their first hits."""
    rows = SearchText.objects.select_related("run").in_bulk(found.keys)
    passages = [rows[key] for key in found.keys if key in rows]
    places = of_passages(passages)
    images = find_images(passages)
    groups: dict[tuple[int | str | None, ...], HitGroup] = {}
    for passage in passages:
        system = (passage.run_id,) if passage.run_id else (passage.model, passage.layer, passage.unit)
        group = groups.setdefault(system, HitGroup(passage))
        group.add(_build_hit(passage, terms, images, places[passage.pk]))
    return list(groups.values())


def find_images(passages: Iterable[SearchText]) -> Mapping[int, str]:
    """Return by key of the passage the thumbnail address of the image whose title or tag it is; raw, not masked,
    since it is shown small."""
    anchors = {row.pk: row.anchor for row in passages if row.kind in OF_IMAGES and row.anchor}
    logged = dict(Observation.objects.filter(pk__in=anchors.values()).values_list("pk", "image_id"))
    found = {pk: logged.get(anchor) for pk, anchor in anchors.items()}
    return {pk: url for pk, key in found.items() if key and (url := address("thumbnail", key, THUMBNAIL))}


def _build_hit(passage: SearchText, terms: Sequence[str], images: Mapping[int, str], url: str) -> Hit:
    kind = TextKind(passage.kind)
    words = snippet(passage.text, terms)
    return Hit(kind, str(kind.label), _place_of(passage), url, words, images.get(passage.pk, ""))


def _place_of(passage: SearchText) -> str:
    """Return its place in the run, in words."""
    if passage.kind == TextKind.TAG:
        return "of an image" if passage.anchor else "of an experiment" if passage.seq else "of the run"
    if passage.kind in {TextKind.REPLY, TextKind.HYPOTHESIS, TextKind.NOTE} and passage.anchor:
        return f"round {passage.anchor}"
    if passage.kind in {TextKind.CODE, TextKind.OUTPUT} and passage.anchor:
        return f"experiment {passage.anchor}"
    return ""


# --- links to passages ------------------------------------------------------------------------------


def address(name: str, *arguments: object) -> str:
    """Return a page's address; "" if there is no such page."""
    try:
        return reverse(name, args=arguments)
    except NoReverseMatch:
        return ""


def of_passages(passages: Iterable[SearchText]) -> Mapping[int, str]:
    """Return by key the address of each passage: its event; for a label from no run, its unit; for an opinion on a
    run, the comment or the reviewed item. Passages must be loaded with their runs."""
    rows = list(passages)
    items = _items_of(rows)
    return {row.pk: items.get((row.kind, row.anchor)) or _of_passage(row) for row in rows}


def _of_passage(passage: SearchText) -> str:
    if passage.run is None:
        return address("unit", passage.model, passage.layer, passage.unit)
    if passage.kind == TextKind.COMMENT and passage.anchor:
        return address("comment", passage.anchor)
    if passage.kind in OPINIONS:  # imported opinions are listed with the comments
        return f"{passage.run.get_absolute_url()}?tab=comments"
    # The event on its run's page, even if the page of a long run shows only a part; the page itself for a question
    page = passage.run.get_absolute_url()
    return f"{page}?at={passage.seq}#e{passage.seq}" if passage.seq else page


def _items_of(passages: Iterable[SearchText]) -> Mapping[tuple[str, int | None], str]:
    """Return kind and key of reviews and final verdicts -> the page of their items."""
    keys = {(row.kind, row.anchor) for row in passages}
    found: dict[tuple[str, int | None], str] = {}
    for kind, model in ((TextKind.REVIEW, Review), (TextKind.FINAL, Adjudication)):
        # Imported reviews have no item here
        if wanted := [key for of, key in keys if of == kind and key]:
            rows = model._default_manager.filter(pk__in=wanted).values_list("pk", "item__queue", "item__position")
            found |= {(str(kind), pk): address("review-item", queue, place) for pk, queue, place in rows}
    return found


# --- snippets; templates escape them -----------------------------------------------------------------


def snippet(text: str, terms: Sequence[str], length: int = LENGTH) -> list[Piece]:
    """Return pieces of the text, each with true for a hit; "…" marks omitted parts."""
    # Hits of several terms may overlap
    spans = list(merge_spans(_find_hits(text, terms)))
    start, end = window(text, spans[0][0] if spans else 0, length)
    pieces = _mark_spans(text, [span for span in spans if start <= span[0] and span[1] <= end][:MAX_MARKS], start, end)
    return [*([("…", False)] if start else []), *pieces, *([("…", False)] if end < len(text) else [])]


def _find_hits(text: str, terms: Sequence[str]) -> Iterator[Span]:
    """Yield the positions of the terms in the original text, in any spelling."""
    normalized, places = normalized_with_places(text)
    for term in terms:
        at = normalized.find(term)
        while at >= 0:
            yield places[at], _next_place(places, at + len(term) - 1)
            at = normalized.find(term, at + len(term))


def _next_place(places: Sequence[int], last: int) -> int:
    """Return the end of the letter from which the last normalized character comes; one letter may normalize to
    several."""
    return next(place for place in places[last + 1 :] if place > places[last])


def merge_spans(spans: Iterator[Span]) -> Iterator[Span]:
    """Yield the spans in order; those that touch are merged."""
    waiting: Span | None = None
    for start, end in sorted(spans):
        if waiting and start <= waiting[1]:
            waiting = waiting[0], max(end, waiting[1])
            continue
        if waiting:
            yield waiting
        waiting = start, end
    if waiting:
        yield waiting


def window(text: str, first: int, length: int) -> Span:
    """Return the part to show: around the first hit, at word boundaries if some are near."""
    if len(text) <= length:
        return 0, len(text)
    start = max(0, min(first - min(BEFORE, length // 3), len(text) - length))
    if start and (space := text.find(" ", start, first)) >= 0:
        start = space + 1
    end = min(start + length, len(text))
    space = text.rfind(" ", end - 30, end) if end < len(text) else end
    return start, space if space > first else end


def _mark_spans(text: str, spans: Sequence[Span], start: int, end: int) -> list[Piece]:
    edges = [start, *(place for span in spans for place in span), end]
    return [(text[a:b], index % 2 == 1) for index, (a, b) in enumerate(pairwise(edges)) if a < b]
