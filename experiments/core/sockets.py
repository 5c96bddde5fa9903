"""Base classes of WebSocket consumers: access, bells, pings; and the consumer by which a page follows its topics.

A bell may be lost and Redis may be dead, so what a listener does every few seconds, in `look`, must work without
it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs
from weakref import WeakSet

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.layers import get_channel_layer
from django.db import DatabaseError
from redis import RedisError

from experiments.core import access, notify

log = logging.getLogger(__name__)

LOOK_EVERY = 3.0
"""Seconds between two looks at the database without a bell."""
JOIN_EVERY = 30.0
"""Seconds after which the groups are joined again, since Redis may have been emptied."""
TAKEN_WITHIN = 30.0
"""Seconds within which a browser must accept a message; after that it is disconnected, and may reconnect."""
CANCEL_AGAIN = 0.5
"""Seconds after which a task that has not ended is cancelled again."""
OVER, NOT_YOURS, TOO_MUCH, BROKEN = 1000, 4404, 4408, 1011
"""Close codes. The browser reconnects only after the last one."""
MAX_MESSAGES = 20
"""Maximum messages from a browser between two looks."""
MAX_HEARD = 100
"""Maximum characters of one message."""
MAX_TOPICS = 10
"""Maximum topics of one socket."""
listening: WeakSet[Listener] = WeakSet()
"""All sockets of this process."""


class Listener(AsyncWebsocketConsumer, ABC):
    """Connection to one browser. A subclass says what is sent, who may listen, what a bell means, and what happens
    without one."""

    # A task of this class listens for bells: with Channels' own, a dead Redis would end the socket.
    channel_layer_alias = "none"

    # --- for subclasses ---

    @abstractmethod
    def begin(self) -> bool:
        """Read the address; return False if it asks for too much."""

    @abstractmethod
    def allowed(self) -> bool:
        """True if the person may listen; checked first and at every look. Reads the database."""

    @abstractmethod
    def groups_heard(self) -> Sequence[str]:
        """Return the channel groups whose bells are received."""

    @abstractmethod
    async def look(self) -> int:
        """Send what is new, at the start and every few seconds. Return the close code once nothing more can follow."""

    @abstractmethod
    async def on_joined(self) -> None:
        """Catch up, each time the groups were joined: bells may have been lost before."""

    @abstractmethod
    async def answer(self, message: dict[str, Any]) -> None:
        """Handle a message of the groups."""

    # --- the socket ---

    async def connect(self) -> None:
        self.heard = 0
        self.work: asyncio.Task[None] | None = None
        wanted = self.begin()
        listening.add(self)
        # Accept first: a browser receives a close code only from an open socket.
        await self.accept()
        if not wanted:
            await self.close(TOO_MUCH)
        elif not await self.may_stay():
            await self.close(NOT_YOURS)
        else:
            self.work = asyncio.create_task(self.follow())

    async def disconnect(self, code: int) -> None:  # noqa: ARG002 - the name is Channels'
        listening.discard(self)
        if self.work is not None:
            await end(self.work)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Answer a ping; ignore everything else; disconnect a browser that sends too much."""
        self.heard += 1
        if self.heard > MAX_MESSAGES or bytes_data is not None or len(text_data or "") > MAX_HEARD:
            await self.close(TOO_MUCH)
        elif _is_ping(text_data or ""):
            with suppress(TimeoutError):
                await self.send_message({"type": "pong"})

    async def send(self, text_data: str | None = None, bytes_data: bytes | None = None, close: bool = False) -> None:
        """Send a message. Raises TimeoutError if the browser accepts nothing: the server buffers a limited amount,
        then waits."""
        async with asyncio.timeout(TAKEN_WITHIN):
            await super().send(text_data, bytes_data, close)

    async def send_message(self, message: dict[str, Any]) -> None:
        await self.send(text_data=json.dumps(message))

    async def may_stay(self) -> bool:
        """True if the session that opened the socket is active, and its user may still listen."""
        return await database_sync_to_async(lambda: access.is_still_signed_in(self.scope) and self.allowed())()

    async def follow(self) -> None:
        """Look and listen until the end. If this fails, the socket closes and the browser reconnects."""
        listening = asyncio.create_task(self.listen())
        try:
            await self.close(await self.look())
        except TimeoutError:
            log.info("A listener at %s takes nothing any more, and is let go.", self.scope["path"])
            with suppress(TimeoutError):
                await asyncio.wait_for(self.close(BROKEN), TAKEN_WITHIN)
        except OSError as error:
            log.info("A listener at %s has gone: %s", self.scope["path"], error)
        except Exception:
            log.exception("The stream at %s broke off; its listener comes back.", self.scope["path"])
            await self.close(BROKEN)
        finally:
            await end(listening)

    # --- the bell ---

    async def listen(self) -> None:
        """Receive bells while Redis is available, and retry later while it is away."""
        while True:
            try:
                await self.hear()
            except (RedisError, OSError, DatabaseError) as error:
                log.info("No bell for a listener at %s: %s", self.scope["path"], error)
                await asyncio.sleep(LOOK_EVERY)

    async def hear(self) -> None:
        """Join the groups and handle their messages."""
        layer = get_channel_layer()
        channel = await layer.new_channel()
        await self.join(layer, channel)
        await self.on_joined()
        receiving = None
        try:
            while True:
                # The same task outlives the timeouts: to cancel it could lose a bell.
                receiving = asyncio.create_task(layer.receive(channel))
                while not (await asyncio.wait({receiving}, timeout=JOIN_EVERY))[0]:
                    await self.join(layer, channel)
                await self.answer(receiving.result())
        finally:
            if receiving is not None:
                await end(receiving)
            # Redis may be away: its groups expire by themselves.
            with suppress(RedisError, OSError):
                for group in self.groups_heard():
                    await layer.group_discard(group, channel)

    async def join(self, layer: Any, channel: str) -> None:
        for group in self.groups_heard():
            await layer.group_add(group, channel)


async def end(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait until it has ended. A single cancel may be swallowed (asyncio.wait_for in Python 3.11)."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=CANCEL_AGAIN)
    if not task.cancelled() and (error := task.exception()):
        log.info("Ended with %s", error)


def _is_ping(text: str) -> bool:
    try:
        return bool(json.loads(text) == {"type": "ping"})
    except ValueError:
        return False


class TopicConsumer(Listener):
    """Tell a page when something about its topics has changed; the page then reloads its parts.

    A bell never carries data, so access is checked when the parts are loaded. A lost bell hides nothing: the page
    also polls every half minute and whenever bells start again.

    To the browser: {"type": "ready"} each time bells start, {"type": "bell", topic}, {"type": "pong"}. From the
    browser: {"type": "ping"} only.
    """

    def begin(self) -> bool:
        asked = parse_qs(self.scope["query_string"].decode("latin-1"), keep_blank_values=True)
        self.topics = list(dict.fromkeys(asked.get("topic", [])))
        return len(self.topics) <= MAX_TOPICS

    def allowed(self) -> bool:
        return access.may_hear(self.scope["user"], self.topics)

    def groups_heard(self) -> Sequence[str]:
        return [notify.topic_group(topic) for topic in self.topics]

    async def look(self) -> int:
        """Continue until the user may no longer follow all the topics."""
        while await self.may_stay():
            self.heard = 0
            await asyncio.sleep(LOOK_EVERY)
        return NOT_YOURS

    async def on_joined(self) -> None:
        await self.send_message({"type": "ready"})

    async def answer(self, message: dict[str, Any]) -> None:
        await self.send_message({"type": "bell", "topic": message["topic"]})
