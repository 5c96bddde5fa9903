"""Which events of a transcript a page draws.

All of an ordinary run; of a long one the first, the last, and those around the event that a link names. What lies
between is a gap, which the reader fills from either side. Spans begin and end with whole rounds where they can.
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
"""Events up to which a run is drawn whole."""
FIRST, LAST, AROUND = 16, 48, 40
"""Events drawn of a longer one: at its beginning, at its end, around the one that is asked for."""
MORE = 48
"""Events by which a gap is filled at once."""
SLACK = 12
"""Events by which a span may grow to begin and end with whole rounds."""


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
    """Events that are not drawn: those between two that are."""

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


def opening(run: Run, at: int | None = None) -> list[Piece]:
    """What the page opens with."""
    whole = Span(1, run.last_seq)
    if run.last_seq <= WHOLE:
        return _laid_out(run, [whole], whole)
    spans = [Span(1, FIRST), Span(run.last_seq - LAST + 1, run.last_seq)]
    if at is not None:
        spans.append(Span(at - AROUND // 2, at + AROUND // 2))
    return _laid_out(run, spans, whole)


def filling(run: Run, gap: Gap, from_below: bool) -> list[Piece]:
    """What takes the place of a gap: the events next to the reader, who comes from above or from below; the rest."""
    span = Span(gap.before - MORE, gap.last) if from_below else Span(gap.next, gap.after + MORE)
    return _laid_out(run, [span], Span(gap.next, min(gap.last, run.last_seq)))


def _laid_out(run: Run, spans: Sequence[Span], bounds: Span) -> list[Piece]:
    """The events of these spans in order, with the gaps between them and the bounds. One query."""
    wide = [span.within(bounds).wider(SLACK).within(bounds) for span in spans]
    wanted = reduce(or_, (Q(seq__range=(span.first, span.last)) for span in wide))
    events = list(run.events.filter(wanted).order_by("seq"))
    starts = [event.seq for event in events if event.kind == "reply"]
    cut = [whole_rounds(span.within(bounds), room, starts, bounds) for span, room in zip(spans, wide, strict=True)]
    pieces: list[Piece] = []
    reached = bounds.first - 1
    for span in merge_spans(cut):
        if span.first > reached + 1:
            pieces.append(Gap(reached, span.first))
        pieces.append([event for event in events if span.first <= event.seq <= span.last])
        reached = span.last
    return [*pieces, Gap(reached, bounds.last + 1)] if reached < bounds.last else pieces


def whole_rounds(span: Span, room: Span, starts: Sequence[int], bounds: Span) -> Span:
    """The span, grown to where its first round begins and its last one ends if there is room for it."""
    before = [seq for seq in starts if room.first <= seq <= span.first]
    after = [seq - 1 for seq in starts if span.last < seq <= room.last]
    first = room.first if room.first == bounds.first else max(before, default=span.first)
    last = room.last if room.last == bounds.last else min(after, default=span.last)
    return Span(first, last)


def merge_spans(spans: Sequence[Span]) -> list[Span]:
    """In order; those that touch or overlap are one."""
    whole: list[Span] = []
    for span in sorted((span for span in spans if span.first <= span.last), key=lambda each: each.first):
        if whole and span.first <= whole[-1].last + 1:
            whole[-1] = Span(whole[-1].first, max(whole[-1].last, span.last))
        else:
            whole.append(span)
    return whole


# --- links ------------------------------------------------------------------------------------------


def link(run: Run, seq: int, anchor: str = "") -> str:
    """The address of an event within the page of its run: of a long run it names the window to draw, too."""
    anchor = f"#{anchor or f'e{seq}'}"
    return anchor if run.last_seq <= WHOLE else f"?at={seq}{anchor}"


def number(params: Mapping[str, str], name: str) -> int | None:
    """A number of the address, None if it is missing or nonsense."""
    return parse_number(params.get(name))


def asked_for(run: Run, params: Mapping[str, str]) -> tuple[int | None, str]:
    """The event that the address names, by `at`, `round` or `experiment`; and what to say if there is none."""
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
