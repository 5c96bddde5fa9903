"""Waiting for something to happen in a run, for an answer whose body is still to come: a bell, and short looks.

An operation that waits would hold the thread that goes through Django's middleware with it, since WhiteNoise and some
of ours know no other way. So operations answer at once, with a `StreamingHttpResponse` whose body the event loop makes:
there nothing holds a thread but a look, and nothing a database connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from asgiref.sync import SyncToAsync
from channels.db import aclose_old_connections, database_sync_to_async
from channels.layers import get_channel_layer
from redis import RedisError

from experiments.core import notify
from experiments.core.sockets import end

LOOK_EVERY = 3.0
"""Seconds between two looks that no bell asked for."""
_LOOKS = ThreadPoolExecutor(4, "look")
"""Looks for everybody who waits."""

Found = TypeVar("Found")


def look(find: Callable[[], Found]) -> Awaitable[Found]:
    """What `find` reads in the database, whose connection is closed again."""
    return database_sync_to_async(find, thread_sensitive=False, executor=_LOOKS)()


async def free_thread() -> None:
    """Give up the thread, and its connection, that Django keeps for this request until its answer is complete. What
    needs one at the end gets another."""
    await aclose_old_connections()
    context = SyncToAsync.thread_sensitive_context.get(None)
    if context and (executor := SyncToAsync.context_to_thread_executor.pop(context, None)):
        executor.shutdown(wait=False)


class Bell:
    """Rings when something has happened in a run, and every few seconds; without Redis only then."""

    def __init__(self, run_id: int) -> None:
        self.layer, self.group, self.channel = get_channel_layer(), notify.group(run_id), ""

    async def __aenter__(self) -> Bell:
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
        """An event; the words of a reply under way do not count."""
        try:
            while (await self.layer.receive(self.channel))["type"] != "run.event":
                pass
        except (RedisError, OSError, AssertionError, TypeError):
            await asyncio.sleep(LOOK_EVERY)
