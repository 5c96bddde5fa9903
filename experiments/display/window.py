"""Choose which events of a transcript a page draws.

All of an ordinary run; of a long one the first, the last, and those around a linked event, with gaps between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from django.db.models import Q

from experiments.core.params import parse_number
from experiments.models import Event, Run

WHOLE = 160
"""Maximum events of a run that is drawn whole."""
FIRST, LAST, AROUND = 16, 48, 40
"""Events drawn of a longer run: at its beginning, at its end, around the linked event."""
MORE = 48
"""Events that fill a gap at once."""
SLACK = 12
"""Maximum events by which a span grows to begin and end with whole rounds."""


@dataclass(frozen=True)
class Span:
    """Events from `first` to `last`, both included."""

    first: int
    last: int

    def within(self, bounds: Span) -> Span:
        return Span(max(self.first, bounds.first), min(self.last, bounds.last))

    def wider(self, by: int) -> Span:
        return Span(self.first - by, self.last + by)


@dataclass(frozen=True)
class Gap:
    """Events between two drawn ones that are not drawn."""

    after: int
    before: int

    @property
    def count(self) -> int:
        return self.before - self.after - 1

    @property
    def next(self) -> int:
        return self.after + 1

    @property
    def last(self) -> int:
        return self.before - 1


Piece = Gap | Sequence[Event]


def list_first_pieces(run: Run, at: int | None = None) -> list[Piece]:
    """Return what the page shows at first."""
    whole = Span(1, run.last_seq)
    if run.last_seq <= WHOLE:
        return _list_pieces(run, [whole], whole)
    spans = [Span(1, FIRST), Span(run.last_seq - LAST + 1, run.last_seq)]
    if at is not None:
        # The linked event in the middle; spans that overlap are merged below.
        spans.append(Span(at - AROUND // 2, at + AROUND // 2))
    return _list_pieces(run, spans, whole)


def fill_gap(run: Run, gap: Gap, from_below: bool) -> list[Piece]:
    """Return what replaces a gap: the events next to the reader, who comes from above or from below, and the rest."""
    span = Span(gap.before - MORE, gap.last) if from_below else Span(gap.next, gap.after + MORE)
    return _list_pieces(run, [span], Span(gap.next, min(gap.last, run.last_seq)))


def _list_pieces(run: Run, spans: Sequence[Span], bounds: Span) -> list[Piece]:
    """Return the events of these spans in order, with the gaps between them and the bounds. One query."""
    # Read a little more on both sides, to find where rounds begin and end.
    wide = [span.within(bounds).wider(SLACK).within(bounds) for span in spans]
    wanted = reduce(or_, (Q(seq__range=(span.first, span.last)) for span in wide))
    events = list(run.events.filter(wanted).order_by("seq"))
    starts = [event.seq for event in events if event.kind == "reply"]
    cut = [extend_to_rounds(span.within(bounds), room, starts, bounds) for span, room in zip(spans, wide, strict=True)]
    pieces: list[Piece] = []
    reached = bounds.first - 1
    for span in merge_spans(cut):
        if span.first > reached + 1:
            pieces.append(Gap(reached, span.first))
        pieces.append([event for event in events if span.first <= event.seq <= span.last])
        reached = span.last
    return [*pieces, Gap(reached, bounds.last + 1)] if reached < bounds.last else pieces


def extend_to_rounds(span: Span, room: Span, starts: Sequence[int], bounds: Span) -> Span:
    """Extend the span to the start of its first round and the end of its last one, if there is room."""
    before = [seq for seq in starts if room.first <= seq <= span.first]
    after = [seq - 1 for seq in starts if span.last < seq <= room.last]
    # At a bound there is nothing more to include.
    first = room.first if room.first == bounds.first else max(before, default=span.first)
    last = room.last if room.last == bounds.last else min(after, default=span.last)
    return Span(first, last)


def merge_spans(spans: Sequence[Span]) -> list[Span]:
    """Sort the spans; merge those that touch or overlap."""
    whole: list[Span] = []
    for span in sorted((span for span in spans if span.first <= span.last), key=lambda each: each.first):
        if whole and span.first <= whole[-1].last + 1:
            whole[-1] = Span(whole[-1].first, max(whole[-1].last, span.last))
        else:
            whole.append(span)
    return whole


# --- links ------------------------------------------------------------------------------------------


def link(run: Run, seq: int, anchor: str = "") -> str:
    """Return the address of an event within the page of its run; in a long run it also names the window to draw."""
    anchor = f"#{anchor or f'e{seq}'}"
    return anchor if run.last_seq <= WHOLE else f"?at={seq}{anchor}"


def number(params: Mapping[str, str], name: str) -> int | None:
    """Return a number of the address; None if it is missing or invalid."""
    return parse_number(params.get(name))


def find_requested_event(run: Run, params: Mapping[str, str]) -> tuple[int | None, str]:
    """Return the event that the address names by `at`, `round` or `experiment`, and a message if there is none."""
    if (at := number(params, "at")) is not None:
        return (at, "") if 0 < at <= run.last_seq else (None, f"event {at}")
    if (round_number := number(params, "round")) is not None:
        found = run.events.filter(kind="reply", payload__round=round_number)
        seq = found.values_list("seq", flat=True).first()
        return seq, "" if seq else f"round {round_number}"
    if (experiment := number(params, "experiment")) is not None:
        seq = run.experiments.filter(number=experiment).values_list("seq", flat=True).first()
        return seq, "" if seq else f"experiment {experiment}"
    return None, ""
