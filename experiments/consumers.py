"""Streams one run to one viewer over a WebSocket: every event after the last one the viewer has, as HTML.

Connect, reload, reconnect, a lost bell, a late joiner: all are `catch_up`. The bell only says when to look; a look
every few seconds needs no bell, so a dead Redis delays but hides nothing. Events are never taken from Redis.

To the browser: {"type": "event", seq, kind, html}, {"type": "head" | "tail" | "outline" | "side", html},
{"type": "state", status, stopping, round}, {"type": "draft", offset, text}, {"type": "progress", what, done, total},
{"type": "pong"}, {"type": "end"}. From the browser: {"type": "ping"}, and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.layers import get_channel_layer
from django.db import DatabaseError
from redis import RedisError

from experiments import access, live, rendering, transcript
from experiments.models import Run

log = logging.getLogger(__name__)

LOOK_EVERY = 3.0
"""Seconds between two looks at the database that no bell asked for."""
JOIN_EVERY = 30.0
"""Seconds after which the group is joined again: Redis may have been emptied."""
CANCEL_AGAIN = 0.5
"""Seconds after which a task that is still there is cancelled again."""
BATCH = 25
"""Events read and sent at once."""
NOT_YOURS, TOO_MUCH, BROKEN = 4404, 4408, 1011
"""Close codes. The browser comes back after the last one alone."""
MOST_HEARD = 20
"""Messages a browser may send between two looks."""
LONGEST_HEARD = 100
"""Characters of one."""


@dataclass(frozen=True)
class News:
    """What a viewer who has everything up to `after` has not seen. `over` when nothing can follow."""

    messages: list[dict[str, Any]]
    seq: int
    over: bool


def news(run_id: int, after: int) -> News:
    """The next events, and the parts of the page that sum the run up. Raises Run.DoesNotExist."""
    run = Run.objects.get(pk=run_id)
    events = transcript.after(run_id, after, BATCH) if run.last_seq > after else []
    messages: list[dict[str, Any]] = [
        {"type": "event", "seq": event.seq, "kind": event.kind, "html": html}
        for event, html in rendering.render_events(run, events)
    ]
    seq = events[-1].seq if events else after
    messages.append(
        {"type": "state", "status": run.status, "stopping": rendering.stopping(run), "round": run.rounds + 1}
    )
    messages += [{"type": "head", "html": rendering.head(run)}, {"type": "tail", "html": rendering.tail(run)}]
    if events:
        messages += [{"type": "outline", "html": rendering.outline(run)}, {"type": "side", "html": rendering.side(run)}]
    return News(messages, seq, run.has_ended and seq >= run.last_seq)


class RunConsumer(AsyncWebsocketConsumer):
    """One viewer of one run."""

    # The bell is heard by a task of this class: were it Channels' own, a dead Redis would end the socket.
    channel_layer_alias = "none"

    async def connect(self) -> None:
        self.run_id: int = self.scope["url_route"]["kwargs"]["pk"]
        self.after = after_of(self.scope["query_string"])
        self.looking, self.over = asyncio.Lock(), asyncio.Event()
        self.shown: dict[str, Any] = {}
        self.drafted = self.heard = 0
        self.work: asyncio.Task[None] | None = None
        await self.accept()
        if not await database_sync_to_async(access.may_watch)(self.scope["user"], self.run_id):
            await self.close(NOT_YOURS)
            return
        self.work = asyncio.create_task(self.follow())

    async def disconnect(self, code: int) -> None:  # noqa: ARG002 - the name is Channels'
        if self.work is not None:
            await end(self.work)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Answer a ping; ignore everything else; end a browser that talks too much."""
        self.heard += 1
        if self.heard > MOST_HEARD or bytes_data is not None or len(text_data or "") > LONGEST_HEARD:
            await self.close(TOO_MUCH)
        elif is_ping(text_data or ""):
            await self.tell({"type": "pong"})

    async def follow(self) -> None:
        """Look and listen until the run is over. If we fail, the socket closes, and the browser comes back."""
        listening = asyncio.create_task(self.listen())
        try:
            await self.look()
            await self.tell({"type": "end"})
            await self.close()
        except OSError as error:
            log.info("The viewer of run %s has gone: %s", self.run_id, error)
        except Exception:
            log.exception("The stream of run %s broke off; its viewer comes back.", self.run_id)
            await self.close(BROKEN)
        finally:
            await end(listening)

    async def look(self) -> None:
        """Catch up at once and every few seconds, until the run is over."""
        while not self.over.is_set():
            await self.catch_up()
            self.heard = 0
            with suppress(TimeoutError):
                await asyncio.wait_for(self.over.wait(), LOOK_EVERY)

    async def catch_up(self) -> None:
        """Send everything the viewer does not have, and note once nothing can follow."""
        async with self.looking:
            moved = True
            while moved and not self.over.is_set():
                found = await database_sync_to_async(news)(self.run_id, self.after)
                moved, self.after = found.seq > self.after, found.seq
                for message in found.messages:
                    await self.show(message)
                if found.over:
                    self.over.set()

    async def show(self, message: dict[str, Any]) -> None:
        """Events always; the summing up only where it has changed."""
        if message["type"] != "event":
            if self.shown.get(message["type"]) == message:
                return
            self.shown[message["type"]] = message
        elif message["kind"] == "reply":
            self.drafted = 0
        await self.tell(message)

    async def tell(self, message: dict[str, Any]) -> None:
        await self.send(text_data=json.dumps(message))

    # --- the bell ---

    async def listen(self) -> None:
        """Hear the bell as long as there is one; where Redis is away, try again later."""
        while True:
            try:
                await self.hear()
            except (RedisError, OSError, DatabaseError) as error:
                log.info("No bell for a viewer of run %s: %s", self.run_id, error)
                await asyncio.sleep(LOOK_EVERY)

    async def hear(self) -> None:
        """Join the run's group and answer its messages."""
        layer = get_channel_layer()
        channel = await layer.new_channel()
        group = live.group(self.run_id)
        await layer.group_add(group, channel)
        await self.catch_up()
        await self.show_current()
        receiving = None
        try:
            while True:
                receiving = asyncio.create_task(layer.receive(channel))
                while not (await asyncio.wait({receiving}, timeout=JOIN_EVERY))[0]:
                    await layer.group_add(group, channel)
                await self.answer(receiving.result())
        finally:
            if receiving is not None:
                await end(receiving)
            with suppress(RedisError, OSError):
                await layer.group_discard(group, channel)

    async def answer(self, message: dict[str, Any]) -> None:
        if message["type"] == "run.event":
            await self.catch_up()
        elif message["type"] == "run.draft":
            await self.draft(message["offset"], message["text"])
        elif message["type"] == "run.progress":
            await self.tell({**message, "type": "progress"})

    async def draft(self, offset: int, text: str) -> None:
        """Pass on words that continue what the viewer has; otherwise send the whole draft, which may be empty."""
        if not text or offset > self.drafted:
            await self.show_current()
            return
        self.drafted = offset + len(text)
        await self.tell({"type": "draft", "offset": offset, "text": text})

    async def show_current(self) -> None:
        """The whole draft and the progress as of now, for a viewer who comes late or has missed a piece."""
        text, report = await sync_to_async(live.current, thread_sensitive=False)(self.run_id)
        self.drafted = len(text)
        await self.tell({"type": "draft", "offset": 0, "text": text})
        if report:
            await self.tell({"type": "progress", **report})


async def end(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait until it is gone. A single cancel may be swallowed (asyncio.wait_for in Python 3.11)."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=CANCEL_AGAIN)
    if not task.cancelled() and (error := task.exception()):
        log.info("Ended with %s", error)


def after_of(query: bytes) -> int:
    """The `after` of the address, 0 if it is missing or no number."""
    digits = parse_qs(query.decode("latin-1")).get("after", ["0"])[0]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else 0


def is_ping(text: str) -> bool:
    try:
        return bool(json.loads(text) == {"type": "ping"})
    except ValueError:
        return False
