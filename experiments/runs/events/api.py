"""What happened in a run, in order: after a number, held until there is more, or as a stream.

Waiting is done by `waiting`, outside of Django: here each question is answered at once.
"""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Field, Router, Schema
from ninja import Query as QueryParameter

from experiments.api.entry import allow
from experiments.api.fields import Id, find
from experiments.core import transcript
from experiments.core.params import parse_number
from experiments.core.system_names import Names
from experiments.models import Event, Run
from experiments.runs.events.waiting import AFTER, LONGEST_WAIT, RUN
from workers.record import events

router = Router(tags=["Events"])

MOST, USUAL = 500, 100
KINDS = "one of: " + ", ".join(
    f"`{kind}` {{{', '.join(each.name for each in fields(row.payload))}}}" for kind, row in events.KINDS.items()
)
"""Each kind with the fields of its payload."""


class EventOut(Schema):
    """One thing that happened. Images appear in the payload as keys."""

    seq: int
    kind: str = Field(description=KINDS)
    time: datetime
    payload: dict[str, Any]


class Events(Schema):
    """The next events of a run."""

    items: list[EventOut]
    after: int = Field(description="send this as `after` to go on")
    over: bool = Field(description="whether the run has ended; one that failed or was stopped may be resumed")


class After(Schema):
    after: int = Field(0, ge=0, le=2**31 - 1, description="the `seq` of the last event you have")


class From(After):
    limit: int = Field(USUAL, ge=1, le=MOST)
    wait: float = Field(
        0, ge=0, le=LONGEST_WAIT, allow_inf_nan=False, description="seconds that an answer without events is held"
    )


STREAM = {"responses": {200: {"content": {"text/event-stream": {"schema": {"type": "object"}}}}}}


@router.get("/runs/{pk}/events", response=Events, summary="Read the events of a run")
def list_events(request: HttpRequest, pk: Id, asked: QueryParameter[From], response: HttpResponse) -> Events:
    """Those after a `seq`. With `wait`, an answer without events is held until there is one or the time is over."""
    names = Names(allow(request))
    told = events_after(find(Run.objects.all(), pk=pk), asked.after, asked.limit, names)
    response["Cache-Control"] = "no-store"
    if not (told.items or told.over):
        response[RUN] = str(pk)
    return told


def events_after(run: Run, after: int, limit: int, names: Names) -> Events:
    found = transcript.after(run.pk, after, limit)
    last = found[-1].seq if found else after
    for event in found:
        event.run = run
    items = [event_out(event, names) for event in found]
    return Events(items=items, after=last, over=run.has_ended and last >= run.last_seq)


def event_out(event: Event, names: Names) -> EventOut:
    return EventOut(seq=event.seq, kind=event.kind, time=event.time, payload=dict(names.payload(event.run, event)))


@router.get("/runs/{pk}/events/stream", response=None, openapi_extra=STREAM, summary="Follow the events of a run")
def stream_events(request: HttpRequest, pk: Id, asked: QueryParameter[After]) -> HttpResponse:
    """Server-sent events: `id` is the `seq`, `event` the kind, `data` the event as JSON; `over` is the last one.

    Whoever comes back says in Last-Event-ID what it has. A stream ends after a quarter of an hour: come back then.
    """
    names = Names(allow(request))
    after = max(asked.after, last_seen(request))
    told = events_after(find(Run.objects.all(), pk=pk), after, MOST, names)
    text = "".join(frame(each) for each in told.items) + ("event: over\ndata: {}\n\n" if told.over else "")
    headers = {AFTER: str(told.after), "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return HttpResponse(text, content_type="text/event-stream", headers=headers | ({} if told.over else {RUN: str(pk)}))


def last_seen(request: HttpRequest) -> int:
    """What a browser says it has when it comes back."""
    return parse_number(request.headers.get("Last-Event-ID")) or 0


def frame(event: EventOut) -> str:
    return f"id: {event.seq}\nevent: {event.kind}\ndata: {json.dumps(event.model_dump(mode='json'))}\n\n"
