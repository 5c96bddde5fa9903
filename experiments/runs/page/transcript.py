"""The transcript: a window of events as they are streamed, the outline, the state of knowledge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from experiments.core.system_names import Names
from experiments.display import events as rendering
from experiments.display import window
from experiments.display.window import Gap, Piece
from experiments.models import Event, Run


@dataclass(frozen=True)
class RenderedPiece:
    """A piece of the page: a gap, or events as HTML."""

    gap: Gap | None = None
    events: Sequence[SafeString] = ()


def read_transcript(run: Run, params: Mapping[str, str], names: Names) -> dict[str, Any]:
    at, missing = window.asked_for(run, params)
    pieces = window.opening(run, at)
    events = [event for piece in pieces if not isinstance(piece, Gap) for event in piece]
    around = next((event.round for event in reversed(events) if event.seq <= (at or 0)), None)
    return {
        "pieces": render_pieces(run, pieces, names),
        "missing": missing,
        "outline": rendering.outline(run, around),
        "side": rendering.side(run, names),
        "tail": rendering.tail(run),
    }


def fill(run: Run, gap: Gap, from_below: bool, names: Names) -> dict[str, Any]:
    """What takes the place of a gap."""
    return {"run": run, "pieces": render_pieces(run, window.filling(run, gap, from_below), names)}


def render_pieces(run: Run, pieces: Sequence[Piece], names: Names) -> list[RenderedPiece]:
    """The pieces as HTML; what the events are drawn with is looked up once for all."""
    events: list[Event] = [event for piece in pieces if not isinstance(piece, Gap) for event in piece]
    html: dict[int, SafeString] = {event.seq: text for event, text in rendering.render_events(run, events, names)}
    return [
        RenderedPiece(gap=piece)
        if isinstance(piece, Gap)
        else RenderedPiece(events=[html[event.seq] for event in piece if event.seq in html])
        for piece in pieces
    ]
