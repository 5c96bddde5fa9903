"""The transcript: a window of events as they are streamed, the outline, the state of knowledge; and the events as they
are kept: JSON, page by page, and the whole as a file."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from django.utils.safestring import SafeString

from experiments.core.paging import Page
from experiments.core.system_names import SystemNameMasker
from experiments.display import events as rendering
from experiments.display import window
from experiments.display.answers import render_answer
from experiments.display.hypothesis_strips import Bearings
from experiments.display.window import Gap, Piece
from experiments.models import Event, Run
from experiments.runs.steering.forms import MessageForm

PER_PAGE = 40
"""Events as they are kept."""


def read_transcript(run: Run, params: Mapping[str, str], names: SystemNameMasker) -> dict[str, Any]:
    at, missing = window.find_requested_event(run, params)
    pieces = window.list_first_pieces(run, at)
    events = [event for piece in pieces if not isinstance(piece, Gap) for event in piece]
    around = next((event.round for event in reversed(events) if event.seq <= (at or 0)), None)
    # Shared by the events and the panel, which draw the same hypotheses.
    bearings: Bearings = {}
    return {
        "pieces": render_pieces(run, pieces, names, bearings, sketched=not is_whole(params)),
        "missing": missing,
        "outline": rendering.outline(run, around),
        "side": rendering.side(run, names, bearings),
        "tail": rendering.tail(run),
        "answer": render_answer(run, names),
        "message": MessageForm(run),
    }


def is_whole(params: Mapping[str, str]) -> bool:
    """True if the address asks for experiments with their pictures, rather than sketches."""
    return params.get("drawn") == "whole"


def render_pieces(
    run: Run, pieces: Sequence[Piece], names: SystemNameMasker, bearings: Bearings | None = None, *, sketched: bool
) -> list[tuple[Gap | None, list[SafeString]]]:
    """Return each piece as a gap, or as events in HTML, drawn with the same number of queries for any number."""
    events: list[Event] = [event for piece in pieces if not isinstance(piece, Gap) for event in piece]
    drawn = rendering.render_events(run, events, names, sketched=sketched, bearings=bearings)
    html: dict[int, SafeString] = {event.seq: text for event, text in drawn}
    return [
        (piece, []) if isinstance(piece, Gap) else (None, [html[event.seq] for event in piece if event.seq in html])
        for piece in pieces
    ]


def read_raw(run: Run, params: Mapping[str, str], names: SystemNameMasker) -> dict[str, Any]:
    """Return the page that the address names by number or by an event on it."""
    at, missing = window.find_requested_event(run, params)
    if at is not None:
        # Events count from 1, and so do pages.
        params = {"tab": "raw", "page": str((at - 1) // PER_PAGE + 1)}
    page = Page.of(params, run.last_seq, PER_PAGE, "tab")
    events = run.events.filter(seq__range=(page.first, page.end)).order_by("seq")
    rendered = [(event, _format_text(event, names.payload(run, event), 2)) for event in events]
    return {"page": page, "missing": missing, "rendered": rendered}


def _format_text(event: Event, payload: Mapping[str, Any], indent: int | None = None) -> str:
    """Return an event with its payload as JSON."""
    data = {"seq": event.seq, "kind": event.kind, "time": event.time.isoformat(), "payload": payload}
    return json.dumps(data, indent=indent, ensure_ascii=False)


async def stream_lines(run: Run, names: SystemNameMasker) -> AsyncIterator[bytes]:
    """Yield all events of a run, a line of JSON for each, without holding them all."""
    # The caller has looked up which names the viewer reads: here no query may run.
    async for event in Event.objects.filter(run_id=run.pk, seq__lte=run.last_seq).order_by("seq").aiterator(100):
        yield _format_text(event, names.payload(run, event)).encode() + b"\n"
