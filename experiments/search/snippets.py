"""Snippets: the part of a text where the terms occur, cut into what is a hit and what is not. Templates escape both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from experiments.core.search_index.normalize import normalized_with_places

LENGTH, BEFORE = 280, 60
"""Characters of a snippet; of them before its first hit."""
MOST = 40
"""Hits marked in one snippet."""

Span = tuple[int, int]
Piece = tuple[str, bool]


def snippet(text: str, terms: Sequence[str], length: int = LENGTH) -> list[Piece]:
    """Pieces of the text, each with whether it is a hit; "…" where something is left out."""
    spans = list(merge_spans(hits(text, terms)))
    start, end = window(text, spans[0][0] if spans else 0, length)
    pieces = mark_spans(text, [span for span in spans if start <= span[0] and span[1] <= end][:MOST], start, end)
    return [*([("…", False)] if start else []), *pieces, *([("…", False)] if end < len(text) else [])]


def hits(text: str, terms: Sequence[str]) -> Iterator[Span]:
    """Where the terms occur in the text as it was written, however it was written."""
    normalized, places = normalized_with_places(text)
    for term in terms:
        at = normalized.find(term)
        while at >= 0:
            yield places[at], next_place(places, at + len(term) - 1)
            at = normalized.find(term, at + len(term))


def next_place(places: Sequence[int], last: int) -> int:
    """Where the letter ends that the last normalized character comes from; one letter may normalize to several."""
    return next(place for place in places[last + 1 :] if place > places[last])


def merge_spans(spans: Iterator[Span]) -> Iterator[Span]:
    """In order, those that touch as one."""
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
    """The part to show: around the first hit, at words' ends where some are near."""
    if len(text) <= length:
        return 0, len(text)
    start = max(0, min(first - min(BEFORE, length // 3), len(text) - length))
    if start and (space := text.find(" ", start, first)) >= 0:
        start = space + 1
    end = min(start + length, len(text))
    space = text.rfind(" ", end - 30, end) if end < len(text) else end
    return start, space if space > first else end


def mark_spans(text: str, spans: Sequence[Span], start: int, end: int) -> list[Piece]:
    edges = [start, *(place for span in spans for place in span), end]
    return [(text[a:b], index % 2 == 1) for index, (a, b) in enumerate(pairwise(edges)) if a < b]
