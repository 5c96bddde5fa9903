"""Stream one run to one viewer over a WebSocket: every event after the last one the viewer has, as HTML.

Connect, reload, reconnect, a lost bell, a late joiner: all are handled by `catch_up`. The bell only says when to look;
every few seconds it looks anyway, so a dead Redis delays but hides nothing. Events are never taken from Redis.

To the browser: {"type": "event", seq, kind, html}, {"type": "head" | "tail" | "outline" | "side" | "answer", html},
{"type": "state", status, stopping, round, may}, {"type": "draft", offset, text}, {"type": "progress", what, done,
total}, {"type": "pong"}, {"type": "end"}. From the browser: {"type": "ping"}, and nothing else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import parse_qs

from asgiref.sync import sync_to_async

from experiments.core import access, notify, sockets, transcript
from experiments.core.params import parse_number
from experiments.core.sockets import NOT_YOURS, OVER, Listener
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display import events as rendering
from experiments.display.answers import render_answer
from experiments.models import Run
from experiments.runs.events.shared import Message, RunUpdate, SharedUpdates
from experiments.runs.steering import actions
from workers.record.statuses import ACTIVE, REOPENABLE

BATCH = 25
"""Events read and sent at once."""
DRAWN_EVERY = 30.0
"""Seconds after which the summary of a run under way is drawn again without news: its clock runs."""
SHARED_SECONDS = 1.5
"""Maximum age of another viewer's reading, if no bell asks for newer."""
JOINED_SECONDS = 0.25
"""The same for a viewer who has just connected: the next look catches up."""
MAX_DRAWN = 200
"""Runs whose summaries are kept."""


def read_news(run_id: int, after: int, names: SystemNameMasker) -> RunUpdate:
    """Return the next events, and the parts of the page that sum the run up, with the names that a viewer may read.
    Raises Run.DoesNotExist."""
    run = visible_to(Run.objects.all()).get(pk=run_id)
    # 1. The events. Most looks find none, which the run's row tells already.
    events = transcript.list_events(run_id, after, BATCH) if run.last_seq > after else []
    messages = [
        Message.of("event", event.kind, seq=event.seq, html=html)
        for event, html in rendering.render_events(run, events, names)
    ]
    seq = events[-1].seq if events else after
    # How the run is, and what may be done to it
    stopping, may = rendering.is_stopping(run), " ".join(actions.list_moves(run))
    messages.append(Message.of("state", status=run.status, stopping=stopping, round=run.rounds + 1, may=may))
    # 2. What sums the run up; the parts that follow its events only with new ones.
    messages += _summaries.of(run)
    if events:
        messages.append(Message.of("outline", html=rendering.outline(run)))
        messages.append(Message.of("side", html=rendering.side(run, names)))
        messages.append(Message.of("answer", html=render_answer(run, names)))
    # 3. Whether more can come.
    has_all = run.has_ended and seq >= run.last_seq
    return RunUpdate(messages, seq, has_all and is_final(run), has_all)


class Summaries:
    """Head and tail of runs as they were drawn last, once for all viewers of this process.

    They are drawn anew when something has happened in the run, and every half minute while work is under way.
    """

    def __init__(self) -> None:
        self._drawn: dict[int, tuple[tuple[Any, ...], list[Message]]] = {}

    def of(self, run: Run) -> list[Message]:
        beat = int(time.monotonic() // DRAWN_EVERY) if run.status in ACTIVE else 0
        asked = (run.cancel_requested, run.pause_requested, run.lease_worker, run.waiting_reason)
        state = (run.created, run.last_seq, run.status, *asked, beat)
        known, messages = self._drawn.get(run.pk, ((), []))
        if known != state:
            parts = {"head": rendering.head(run), "tail": rendering.tail(run)}
            messages = [Message.of(name, html=html) for name, html in parts.items()]
            # Inserted again at the end, so that the runs drawn longest ago are dropped first.
            self._drawn.pop(run.pk, None)
            self._drawn[run.pk] = state, messages
            for oldest in list(self._drawn)[:-MAX_DRAWN]:
                self._drawn.pop(oldest, None)
        return messages


_summaries = Summaries()
_news = SharedUpdates()


def is_final(run: Run) -> bool:
    """True if nothing can follow. A failed or stopped run can still be resumed."""
    return run.has_ended and run.status not in REOPENABLE


class RunConsumer(Listener):
    """One viewer of one run."""

    def begin(self) -> bool:
        self.run_id: int = self.scope["url_route"]["kwargs"]["pk"]
        # `after` of the address; 0 if it is missing or not a number.
        self.after = parse_number(parse_qs(self.scope["query_string"].decode("latin-1")).get("after", ["0"])[0]) or 0
        self.looking, self.over = asyncio.Lock(), asyncio.Event()
        self.rests = False
        self.shown: dict[str, str] = {}
        self.drafted = 0
        return True

    def allowed(self) -> bool:
        return access.may_watch(self.scope["user"], self.run_id)

    def groups_heard(self) -> Sequence[str]:
        return [notify.group(self.run_id)]

    async def look(self) -> int:
        """Catch up at once and every few seconds, until the run is over or the viewer may not watch it any more.

        A failed or stopped run is read again only when its bell rings.
        """
        while not self.over.is_set():
            self.heard = 0
            if not self.rests:
                await self.catch_up(time.monotonic() - SHARED_SECONDS)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.over.wait(), sockets.LOOK_EVERY)
            if not await self.may_stay():
                return NOT_YOURS
        await self.send_message({"type": "end"})
        return OVER

    async def catch_up(self, since: float) -> None:
        """Send everything the viewer does not have, as read no earlier than `since`, and note once nothing can
        follow."""
        # A bell and the regular look may come at the same moment.
        async with self.looking:
            moved = True
            # In batches, until one brings nothing new.
            while moved and not self.over.is_set():
                found = await self.read_on(since)
                moved, self.after, self.rests = found.seq > self.after, found.seq, found.rests
                for message in found.messages:
                    await self.show(message)
                if found.over:
                    self.over.set()

    async def read_on(self, since: float) -> RunUpdate:
        """Return what follows, as this viewer may read it now."""
        read = partial(read_news, self.run_id, self.after)
        return await _news.read((self.run_id, self.after), since, SystemNameMasker(self.scope["user"]), read)

    async def show(self, message: Message) -> None:
        """Send events always; the summary only if it has changed."""
        if message.kind != "event":
            if self.shown.get(message.kind) == message.text:
                return
            self.shown[message.kind] = message.text
        elif message.event == "reply":
            # The reply is complete: the next draft begins anew.
            self.drafted = 0
        await self.send(text_data=message.text)

    async def on_joined(self) -> None:
        await self.catch_up(time.monotonic() - JOINED_SECONDS)
        await self.show_current()

    async def answer(self, message: dict[str, Any]) -> None:
        if message["type"] == "run.event":
            await self.catch_up(_news.hear(message["bell"]))
        elif message["type"] == "run.draft":
            await self.draft(message["offset"], message["text"])
        elif message["type"] == "run.progress":
            await self.send_message({**message, "type": "progress"})

    async def draft(self, offset: int, text: str) -> None:
        """Pass on words that continue what the viewer has; otherwise send the whole draft, which may be empty."""
        if not text or offset > self.drafted:
            await self.show_current()
            return
        self.drafted = offset + len(text)
        await self.send_message({"type": "draft", "offset": offset, "text": text})

    async def show_current(self) -> None:
        """Send the whole draft and the current progress, for a viewer who connects late or has missed a piece."""
        text, report = await sync_to_async(notify.current, thread_sensitive=False)(self.run_id)
        self.drafted = len(text)
        await self.send_message({"type": "draft", "offset": 0, "text": text})
        if report:
            await self.send_message({"type": "progress", **report})
