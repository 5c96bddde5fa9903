"""Streams one run to one viewer over a WebSocket: every event after the last one the viewer has, as HTML.

Connect, reload, reconnect, a lost bell, a late joiner: all are `catch_up`. The bell only says when to look; a look
every few seconds needs no bell, so a dead Redis delays but hides nothing. Events are never taken from Redis.

To the browser: {"type": "event", seq, kind, html}, {"type": "head" | "tail" | "outline" | "side", html}, {"type":
"state", status, stopping, round, may}, {"type": "draft", offset, text}, {"type": "progress", what, done, total},
{"type": "pong"}, {"type": "end"}. From the browser: {"type": "ping"}, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async

from experiments.core import access, notify, sockets, transcript
from experiments.core.params import parse_number
from experiments.core.sockets import NOT_YOURS, OVER, Listener
from experiments.core.system_names import Names
from experiments.display import events as rendering
from experiments.models import Run
from experiments.runs.steering import actions
from workers.record.statuses import REOPENABLE

BATCH = 25
"""Events read and sent at once."""


@dataclass(frozen=True)
class News:
    """What a viewer who has everything up to `after` has not seen. `over` when nothing can follow."""

    messages: list[dict[str, Any]]
    seq: int
    over: bool


def news(run_id: int, after: int, viewer: Any) -> News:
    """The next events, and the parts of the page that sum the run up, as this person may read them. Raises
    Run.DoesNotExist."""
    run, names = Run.objects.get(pk=run_id), Names(viewer)
    events = transcript.after(run_id, after, BATCH) if run.last_seq > after else []
    messages: list[dict[str, Any]] = [
        {"type": "event", "seq": event.seq, "kind": event.kind, "html": html}
        for event, html in rendering.render_events(run, events, names)
    ]
    seq = events[-1].seq if events else after
    messages.append(state(run))
    messages += [{"type": "head", "html": rendering.head(run)}, {"type": "tail", "html": rendering.tail(run)}]
    if events:
        messages.append({"type": "outline", "html": rendering.outline(run)})
        messages.append({"type": "side", "html": rendering.side(run, names)})
    return News(messages, seq, is_final(run) and seq >= run.last_seq)


def state(run: Run) -> dict[str, Any]:
    """How the run is, and what may be done to it."""
    stopping, may = rendering.stopping(run), " ".join(actions.moves(run))
    return {"type": "state", "status": run.status, "stopping": stopping, "round": run.rounds + 1, "may": may}


def is_final(run: Run) -> bool:
    """Whether nothing can follow: one that failed or was stopped may yet be had go on."""
    return run.has_ended and run.status not in REOPENABLE


class RunConsumer(Listener):
    """One viewer of one run."""

    def begin(self) -> bool:
        self.run_id: int = self.scope["url_route"]["kwargs"]["pk"]
        self.after = after_of(self.scope["query_string"])
        self.looking, self.over = asyncio.Lock(), asyncio.Event()
        self.shown: dict[str, Any] = {}
        self.drafted = 0
        return True

    def allowed(self) -> bool:
        return access.may_watch(self.scope["user"], self.run_id)

    def groups_heard(self) -> Sequence[str]:
        return [notify.group(self.run_id)]

    async def look(self) -> int:
        """Catch up at once and every few seconds, until the run is over or the viewer may not watch it any more."""
        while not self.over.is_set():
            self.heard = 0
            await self.catch_up()
            await sync_to_async(notify.watch, thread_sensitive=False)(self.run_id)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.over.wait(), sockets.LOOK_EVERY)
            if not await self.may_stay():
                return NOT_YOURS
        await self.tell({"type": "end"})
        return OVER

    async def catch_up(self) -> None:
        """Send everything the viewer does not have, and note once nothing can follow."""
        async with self.looking:
            moved = True
            while moved and not self.over.is_set():
                found = await database_sync_to_async(news)(self.run_id, self.after, self.scope["user"])
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

    async def joined(self) -> None:
        await self.catch_up()
        await self.show_current()

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
        text, report = await sync_to_async(notify.current, thread_sensitive=False)(self.run_id)
        self.drafted = len(text)
        await self.tell({"type": "draft", "offset": 0, "text": text})
        if report:
            await self.tell({"type": "progress", **report})


def after_of(query: bytes) -> int:
    """The `after` of the address, 0 if it is missing or no number."""
    return parse_number(parse_qs(query.decode("latin-1")).get("after", ["0"])[0]) or 0
