"""Answers that wait for something to happen in a run, held outside of Django: no thread, no database connection.

Django is asked at once, and checks who asks, what and how often. If nothing is new we wait for the bell and ask again:
for a long poll until there is something to tell, for a stream again and again, each piece sent on as it comes. So
access is checked anew at each look, and what a waiting client gets is what any other gets. Wraps the ASGI application.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from channels.layers import get_channel_layer
from redis import RedisError

from experiments.core import notify
from experiments.core.sockets import end

Message = dict[str, Any]
Said = Mapping[str, Any]
Receive = Callable[[], Awaitable[Said]]
Send = Callable[[Said], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

RUN, AFTER = "Maia-Run", "Maia-After"
"""Headers by which Django says which run to wait for, and what a stream has told."""
LONGEST_WAIT = 30
LONGEST_STREAM = 900
LOOK_EVERY = 3.0
"""Seconds between two looks that no bell asked for."""
STILL_HERE = b": still here\n\n"
ADDRESS = re.compile(r"/api/v1/runs/\d{1,19}/events(?P<stream>/stream)?")


@dataclass(frozen=True)
class _Response:
    """What Django answered."""

    start: Said
    body: bytes

    def header(self, name: str) -> str:
        return dict(self.start["headers"]).get(name.encode(), b"").decode("latin-1")


class Waiting:
    """Around the application."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        found = ADDRESS.fullmatch(scope.get("path", "")) if scope.get("method") == "GET" else None
        if found is None:
            await self.app(scope, receive, send)
            return
        client = Client(self.app, scope, receive, send)
        await (client.stream() if found["stream"] else client.poll())


class Client:
    """One client that waits."""

    def __init__(self, app: App, scope: Message, receive: Receive, send: Send) -> None:
        self.app, self.scope, self.receive, self.send = app, scope, receive, send

    async def poll(self) -> None:
        """Answer once there is something to tell, or the time is over."""
        answer = await self.ask(self.scope)
        until = time.monotonic() + wait_of(self.scope)
        if answer.header(RUN) and time.monotonic() < until:
            async with Bell(int(answer.header(RUN)), self.receive) as bell:
                while answer.header(RUN) and await bell.rung(until):
                    answer = await self.ask({**self.scope, "maia.look": True})
        await self.send(answer.start)
        await self.send({"type": "http.response.body", "body": answer.body})

    async def stream(self) -> None:
        """Send what there is, and what comes."""
        answer = await self.ask(self.scope)
        headers = [each for each in answer.start["headers"] if each[0].lower() != b"content-length"]
        await self.send({**answer.start, "headers": headers if answer.header(AFTER) else answer.start["headers"]})
        if answer.header(RUN):
            until = time.monotonic() + LONGEST_STREAM
            async with Bell(int(answer.header(RUN)), self.receive) as bell:
                await self.piece(answer.body)
                while answer.header(RUN) and await bell.rung(until):
                    query = f"after={answer.header(AFTER)}".encode()
                    answer = await self.ask({**self.scope, "maia.look": True, "query_string": query})
                    await self.piece(answer.body if answer.header(AFTER) else b"")
        else:
            await self.piece(answer.body)
        await self.send({"type": "http.response.body", "body": b""})

    async def piece(self, body: bytes) -> None:
        await self.send({"type": "http.response.body", "body": body or STILL_HERE, "more_body": True})

    async def ask(self, scope: Message) -> _Response:
        """What Django answers at this moment. It finishes what it has begun even where we are told to stop: its threads
        need this loop to end."""
        heard: list[Said] = []
        bodies = iter([{"type": "http.request", "body": b""}])

        async def receive() -> Said:
            return next(bodies, None) or await asyncio.get_running_loop().create_future()

        async def send(message: Said) -> None:
            heard.append(message)

        await asyncio.shield(asyncio.ensure_future(self.app(scope, receive, send)))
        return _Response(heard[0], b"".join(message.get("body", b"") for message in heard[1:]))


class Bell:
    """Rings when something has happened in a run. Without Redis it rings every few seconds."""

    def __init__(self, run: int, receive: Receive) -> None:
        self.group, self.receive = notify.group(run), receive
        self.layer, self.channel = get_channel_layer(), ""

    async def __aenter__(self) -> Bell:
        with suppress(RedisError, OSError):
            self.channel = await self.layer.new_channel()
            await self.layer.group_add(self.group, self.channel)
        self.gone = asyncio.create_task(self.disconnected())
        self.looked = False
        return self

    async def __aexit__(self, *_: object) -> None:
        await end(self.gone)
        with suppress(RedisError, OSError):
            await self.layer.group_discard(self.group, self.channel)

    async def rung(self, until: float) -> bool:
        """Wait for the bell, a few seconds at most; False once the time is over or the client has gone.

        The first time it rings at once: something may have happened before it hung.
        """
        if not self.looked:
            self.looked = True
            return True
        left = min(LOOK_EVERY, until - time.monotonic())
        if left <= 0:
            return False
        hearing = asyncio.create_task(self.hear())
        await asyncio.wait({hearing, self.gone}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        await end(hearing)
        return not self.gone.done()

    async def hear(self) -> None:
        """An event; the words of a reply under way do not count."""
        try:
            while (await self.layer.receive(self.channel))["type"] != "run.event":
                pass
        except (RedisError, OSError, AssertionError, TypeError):
            await asyncio.sleep(LOOK_EVERY)

    async def disconnected(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass


def wait_of(scope: Message) -> float:
    """The seconds that the address asks for; Django has found them right, or has answered with a problem."""
    told = parse_qs(scope["query_string"].decode("latin-1")).get("wait", ["0"])[-1]
    try:
        return min(float(told), LONGEST_WAIT)
    except ValueError:
        return 0.0
