"""What all sockets share: who may listen, the bell that says when to look, pings; and
the one by which a page hears of its topics.

The bell may be lost and Redis may be dead: what a listener does every few seconds, in `look`, must do without it.
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
"""Seconds between two looks at the database that no bell asked for."""
JOIN_EVERY = 30.0
"""Seconds after which the groups are joined again: Redis may have been emptied."""
TAKEN_WITHIN = 30.0
"""Seconds within which a browser must take a message; one that takes nothing is let go, and comes back if it can."""
CANCEL_AGAIN = 0.5
"""Seconds after which a task that is still there is cancelled again."""
OVER, NOT_YOURS, TOO_MUCH, BROKEN = 1000, 4404, 4408, 1011
"""Close codes. The browser comes back after the last one alone."""
MOST_HEARD = 20
"""Messages a browser may send between two looks."""
LONGEST_HEARD = 100
"""Characters of one."""
MOST_TOPICS = 10
"""Topics that one socket hears."""
listening: WeakSet[Listener] = WeakSet()
"""All sockets of this process."""


class Listener(AsyncWebsocketConsumer, ABC):
    """One browser that listens. A subclass says to what, who may, what a bell means, and what is done without one."""

    # The bell is heard by a task of this class: were it Channels' own, a dead Redis would end the socket.
    channel_layer_alias = "none"

    # --- for subclasses ---

    @abstractmethod
    def begin(self) -> bool:
        """Read the address; False for one that asks for too much."""

    @abstractmethod
    def allowed(self) -> bool:
        """Whether the person may listen, asked in the first line and at every look. Touches the database."""

    @abstractmethod
    def groups_heard(self) -> Sequence[str]:
        """The channel groups whose bells are heard."""

    @abstractmethod
    async def look(self) -> int:
        """What is done once and every few seconds; returns the code to close with once nothing can follow."""

    @abstractmethod
    async def on_joined(self) -> None:
        """What is done each time the groups were joined after bells may have been lost."""

    @abstractmethod
    async def answer(self, message: dict[str, Any]) -> None:
        """What a message of the groups means."""

    # --- the socket ---

    async def connect(self) -> None:
        self.heard = 0
        self.work: asyncio.Task[None] | None = None
        wanted = self.begin()
        listening.add(self)
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
        """Answer a ping; ignore everything else; end a browser that talks too much."""
        self.heard += 1
        if self.heard > MOST_HEARD or bytes_data is not None or len(text_data or "") > LONGEST_HEARD:
            await self.close(TOO_MUCH)
        elif _is_ping(text_data or ""):
            with suppress(TimeoutError):
                await self.send_message({"type": "pong"})

    async def send(self, text_data: str | None = None, bytes_data: bytes | None = None, close: bool = False) -> None:
        """Raises TimeoutError where the browser takes nothing: the server keeps only so much for it, and waits."""
        async with asyncio.timeout(TAKEN_WITHIN):
            await super().send(text_data, bytes_data, close)

    async def send_message(self, message: dict[str, Any]) -> None:
        await self.send(text_data=json.dumps(message))

    async def may_stay(self) -> bool:
        """Whether the session that opened the socket lasts, and its person may still listen."""
        return await database_sync_to_async(lambda: access.is_still_signed_in(self.scope) and self.allowed())()

    async def follow(self) -> None:
        """Look and listen until it is over. If we fail, the socket closes, and the browser comes back."""
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
        """Hear the bell as long as there is one; where Redis is away, try again later."""
        while True:
            try:
                await self.hear()
            except (RedisError, OSError, DatabaseError) as error:
                log.info("No bell for a listener at %s: %s", self.scope["path"], error)
                await asyncio.sleep(LOOK_EVERY)

    async def hear(self) -> None:
        """Join the groups and answer their messages."""
        layer = get_channel_layer()
        channel = await layer.new_channel()
        await self.join(layer, channel)
        await self.on_joined()
        receiving = None
        try:
            while True:
                receiving = asyncio.create_task(layer.receive(channel))
                while not (await asyncio.wait({receiving}, timeout=JOIN_EVERY))[0]:
                    await self.join(layer, channel)
                await self.answer(receiving.result())
        finally:
            if receiving is not None:
                await end(receiving)
            with suppress(RedisError, OSError):
                for group in self.groups_heard():
                    await layer.group_discard(group, channel)

    async def join(self, layer: Any, channel: str) -> None:
        for group in self.groups_heard():
            await layer.group_add(group, channel)


async def end(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait until it is gone. A single cancel may be swallowed (asyncio.wait_for in Python 3.11)."""
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
    """Tells a page when something about its topics has changed; the page then asks for its parts again.

    A bell never carries data, so what a person may see is decided where it is asked for. A lost bell hides nothing: the
    page also asks by itself, every half minute and whenever the bells begin anew.

    To the browser: {"type": "ready"} each time bells begin to be heard, {"type": "bell", topic}, {"type": "pong"}. From
    the browser: {"type": "ping"}, and nothing else.
    """

    def begin(self) -> bool:
        asked = parse_qs(self.scope["query_string"].decode("latin-1"), keep_blank_values=True)
        self.topics = list(dict.fromkeys(asked.get("topic", [])))
        return len(self.topics) <= MOST_TOPICS

    def allowed(self) -> bool:
        return access.may_hear(self.scope["user"], self.topics)

    def groups_heard(self) -> Sequence[str]:
        return [notify.topic_group(topic) for topic in self.topics]

    async def look(self) -> int:
        """Until the person may not hear all of it any more."""
        while await self.may_stay():
            self.heard = 0
            await asyncio.sleep(LOOK_EVERY)
        return NOT_YOURS

    async def on_joined(self) -> None:
        await self.send_message({"type": "ready"})

    async def answer(self, message: dict[str, Any]) -> None:
        await self.send_message({"type": "bell", "topic": message["topic"]})
