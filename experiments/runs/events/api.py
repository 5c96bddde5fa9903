"""What happened in a run, in order: after a number, held until there is more, or as a stream."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, TypeVar

from asgiref.sync import SyncToAsync
from channels.db import aclose_old_connections, database_sync_to_async
from channels.layers import get_channel_layer
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Field, Router, Schema
from ninja import Query as QueryParameter
from ninja.renderers import JSONRenderer
from redis import RedisError

from experiments.api.auth import authorize, is_still_allowed
from experiments.api.fields import Id, find
from experiments.api.problems import Refusal
from experiments.core import notify, transcript
from experiments.core.params import MAX_COUNT, parse_number
from experiments.core.sockets import end
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.models import Event, Run
from workers.record import events

router = Router(tags=["Events"])

MAX_PAGE_SIZE, DEFAULT_PAGE_SIZE = 500, 100
MAX_WAIT, MAX_STREAM = 30, 900
"""Seconds."""
STILL_HERE = ": still here\n\n"
KINDS = "one of: " + ", ".join(
    f"`{kind}` {{{', '.join(each.name for each in fields(row.payload))}}}" for kind, row in events.KINDS.items()
)
"""Each kind with the fields of its payload."""
LOOK_EVERY = 3.0
"""Seconds between two looks that no bell asked for."""
_LOOKS = ThreadPoolExecutor(4, "look")
"""Threads of the looks of all waiting clients."""

Found = TypeVar("Found")


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
    after: int = Field(0, ge=0, le=MAX_COUNT, description="the `seq` of the last event you have")


class From(After):
    limit: int = Field(DEFAULT_PAGE_SIZE, ge=1, le=MAX_PAGE_SIZE)
    wait: float = Field(
        0, ge=0, le=MAX_WAIT, allow_inf_nan=False, description="seconds that an answer without events is held"
    )


UNSTORED = {"Cache-Control": "no-store"}
STREAM = {"responses": {200: {"content": {"text/event-stream": {"schema": {"type": "object"}}}}}}


@router.get("/runs/{pk}/events", response=Events, summary="Read the events of a run")
def list_events(
    request: HttpRequest, pk: Id, asked: QueryParameter[From], response: HttpResponse
) -> Events | StreamingHttpResponse:
    """Those after a `seq`. With `wait`, an answer without events is held until there is one or the time is over."""
    authorize(request)
    reader = Reader(request, pk, asked.after, asked.limit)
    batch = reader.read()
    response["Cache-Control"] = "no-store"
    # Nothing to wait for: a plain answer.
    if batch.items or batch.over or not asked.wait:
        return batch
    return StreamingHttpResponse(
        reader.poll(asked.wait), content_type="application/json; charset=utf-8", headers=UNSTORED
    )


@router.get("/runs/{pk}/events/stream", response=None, openapi_extra=STREAM, summary="Follow the events of a run")
def stream_events(request: HttpRequest, pk: Id, asked: QueryParameter[After]) -> HttpResponse | StreamingHttpResponse:
    """Server-sent events: `id` is the `seq`, `event` the kind, `data` the event as JSON; `over` is the last one.

    A client that reconnects sends the last id it received as Last-Event-ID. Streams end after 15 minutes.
    """
    authorize(request)
    # A browser that reconnects sends Last-Event-ID by itself, to the same address.
    after = max(asked.after, parse_number(request.headers.get("Last-Event-ID")) or 0)
    reader = Reader(request, pk, after, MAX_PAGE_SIZE)
    batch = reader.read()
    answer, body = (HttpResponse, frames(batch)) if batch.over else (StreamingHttpResponse, reader.stream())
    # nginx would keep the stream in its buffer.
    return answer(body, content_type="text/event-stream", headers={**UNSTORED, "X-Accel-Buffering": "no"})


@dataclass
class Reader:
    """A viewer who was let in and keeps reading, as long as access lasts."""

    request: HttpRequest
    run_id: int
    after: int
    limit: int

    def read(self) -> Events:
        """Return the next events, with the names that this person reads now. Raises Refusal if there is no such run."""
        found = transcript.list_events(self.run_id, self.after, self.limit)
        # Read after its events, so that the run has ended if its end is among them.
        run = find(visible_to(Run.objects.all()), pk=self.run_id)
        last = found[-1].seq if found else self.after
        names = SystemNameMasker(self.request.user)
        for event in found:
            event.run = run
        items = [event_out(event, names) for event in found]
        return Events(items=items, after=last, over=run.has_ended and last >= run.last_seq)

    def look(self) -> Events | None:
        """Read once more; return None if the person may not read on, or the run is gone."""
        with suppress(Refusal):
            return self.read() if is_still_allowed(self.request) else None
        return None

    async def follow(self, seconds: float) -> AsyncGenerator[Events, None]:
        """Yield what each look finds, until the run is over or the time is up."""
        until = time.monotonic() + seconds
        await _free_thread()
        async with RunBell(self.run_id) as bell:
            while batch := await look(self.look):
                self.after = batch.after
                yield batch
                left = until - time.monotonic()
                if batch.over or left <= 0:
                    return
                # A full batch: there is more, so do not wait.
                if len(batch.items) < self.limit:
                    await bell.rung(left)

    async def poll(self, seconds: float) -> AsyncGenerator[str, None]:
        """Yield one answer as JSON, once there is something to report or the time is up."""
        batch = Events(items=[], after=self.after, over=False)
        async with aclosing(self.follow(seconds)) as answers:
            async for batch in answers:
                if batch.items or batch.over:
                    break
        yield JSONRenderer().render(self.request, batch.model_dump(), response_status=200)

    async def stream(self) -> AsyncGenerator[str, None]:
        """Yield frames as they come; a comment if a look finds nothing, so that proxies keep the connection open."""
        async with aclosing(self.follow(MAX_STREAM)) as answers:
            async for batch in answers:
                yield frames(batch) or STILL_HERE


def event_out(event: Event, names: SystemNameMasker) -> EventOut:
    return EventOut(seq=event.seq, kind=event.kind, time=event.time, payload=names.payload(event.run, event))


def frames(batch: Events) -> str:
    """Format events as server-sent events."""
    each = (
        f"id: {one.seq}\nevent: {one.kind}\ndata: {json.dumps(one.model_dump(mode='json'))}\n\n" for one in batch.items
    )
    return "".join(each) + ("event: over\ndata: {}\n\n" if batch.over else "")


# --- waiting for something to happen ------------------------------------------------------------------
#
# An operation that waits would hold the thread that goes through Django's middleware with it, since WhiteNoise and some
# of ours know no other way. So operations answer at once, with a `StreamingHttpResponse` whose body the event loop
# makes: there nothing holds a thread but a look, and nothing a database connection.


def look(find: Callable[[], Found]) -> Awaitable[Found]:
    """Run `find` in a thread of the pool, and close its database connection."""
    return database_sync_to_async(find, thread_sensitive=False, executor=_LOOKS)()


async def _free_thread() -> None:
    """Give up the thread that Django keeps for this request until its answer is complete, and its connection."""
    await aclose_old_connections()
    # asgiref starts another thread if one is needed at the end.
    context = SyncToAsync.thread_sensitive_context.get(None)
    if context and (executor := SyncToAsync.context_to_thread_executor.pop(context, None)):
        executor.shutdown(wait=False)


class RunBell:
    """Rings when something has happened in a run, and every few seconds; without Redis only then."""

    def __init__(self, run_id: int) -> None:
        self.layer, self.group, self.channel = get_channel_layer(), notify.group(run_id), ""

    async def __aenter__(self) -> RunBell:
        # Without Redis no bell rings: `rung` then waits until its next look.
        with suppress(RedisError, OSError):
            self.channel = await self.layer.new_channel()
            await self.layer.group_add(self.group, self.channel)
        return self

    async def __aexit__(self, *_: object) -> None:
        with suppress(RedisError, OSError):
            await self.layer.group_discard(self.group, self.channel)

    async def rung(self, seconds: float) -> None:
        """Wait until it rings, at most so long."""
        listening = asyncio.create_task(self._hear())
        try:
            await asyncio.wait({listening}, timeout=min(LOOK_EVERY, seconds))
        finally:
            await end(listening)

    async def _hear(self) -> None:
        """Wait for an event; pieces of a reply under way do not count."""
        try:
            while (await self.layer.receive(self.channel))["type"] != "run.event":
                pass
        except (RedisError, OSError, AssertionError, TypeError):
            # Without Redis or a channel, only the regular looks remain.
            await asyncio.sleep(LOOK_EVERY)
