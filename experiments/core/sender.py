"""Send messages to channel groups from one thread, over one connection, so that no request waits for Redis.

If Redis is away, a message is lost with those queued behind it; listeners catch up from the database.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import threading
from contextlib import suppress
from queue import Empty, Full, Queue
from typing import Any

from channels.layers import get_channel_layer
from redis import RedisError

log = logging.getLogger(__name__)

MAX_WAITING = 1_000
"""Maximum number of queued messages."""
END_SECONDS = 5.0
"""Seconds allowed at the end for sending queued messages."""
Message = tuple[str, dict[str, Any]]
"""A group, and its message."""


class Sender:
    """Sender of messages; `send` returns at once. The thread starts with the first message, and ends with `end` or
    the process."""

    def __init__(self) -> None:
        self._waiting: Queue[Message | None] = Queue(MAX_WAITING)
        self._thread: threading.Thread | None = None
        self._beginning = threading.Lock()
        atexit.register(self.end)

    def send(self, to: str, message: dict[str, Any]) -> None:
        with self._beginning:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._go_on, name="sender", daemon=True)
                self._thread.start()
        # A full queue drops the message: no request waits for Redis.
        try:
            self._waiting.put_nowait((to, message))
        except Full:
            log.warning("%d messages wait for Redis; one to %s is left out.", MAX_WAITING, to)

    def end(self) -> None:
        """Send queued messages and close the connection; the next message starts anew."""
        with self._beginning:
            if self._thread is not None and self._thread.is_alive():
                self._waiting.put(None)
                self._thread.join(END_SECONDS)

    def _go_on(self) -> None:
        loop = asyncio.new_event_loop()
        try:
            while (waiting := self._waiting.get()) is not None:
                self._pass_on(loop, *waiting)
        finally:
            loop.close()  # and with it the layer's connections

    def _pass_on(self, loop: asyncio.AbstractEventLoop, to: str, message: dict[str, Any]) -> None:
        try:
            loop.run_until_complete(get_channel_layer().group_send(to, message))
        except (RedisError, OSError, RuntimeError) as error:  # RuntimeError: the process is ending
            # Each queued message would wait for the same timeout.
            left = self._forget()
            log.warning(
                "Redis took no message to %s, nor %d behind it: %s. Viewers catch up by themselves.", to, left, error
            )

    def _forget(self) -> int:
        """Drop queued messages, except the signal to end; return how many."""
        left = 0
        with suppress(Empty):
            while True:
                if self._waiting.get_nowait() is None:
                    self._waiting.put(None)
                    return left
                left += 1
        return left
