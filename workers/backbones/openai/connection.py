"""The connection to a provider: one client and one event loop for each reply, so backbones share nothing."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Iterator
from functools import cache
from typing import Any

import httpx2
import openai

from workers.backbones.openai.framing import read_chunks
from workers.backbones.openai.provider_errors import OPENAI, host_of
from workers.backbones.openai.retry import PULSE
from workers.errors import BackboneRefused
from workers.protocols import Provider

_AHEAD = 64
"""Number of chunks read ahead."""
_END = object()
"""Marks the end of the chunks."""
_NO_KEY = "none"
"""Local servers need no key, but the SDK does."""


class Connection:
    """A context manager; leaving it closes every connection."""

    def __init__(self, provider: Provider, connect: float) -> None:
        """`connect` is the timeout of a connection attempt, in seconds."""
        self._provider = provider
        # Redirects are not followed: the key goes to the address that was set and to no other. A proxy that the
        # environment names is used, but never on the way to this very machine.
        web = openai.DefaultAsyncHttpx2Client(
            follow_redirects=False,
            timeout=httpx2.Timeout(None, connect=connect),
            verify=_load_certificates(),
            trust_env=not re.match(r"(localhost|127\.[\d.]+|\[::1\])(:|$)", host_of(provider)),
        )
        # Retries are ours: they tell viewers and can be stopped.
        self._client = openai.AsyncOpenAI(
            api_key=provider.key or _NO_KEY, base_url=provider.base_url or OPENAI, max_retries=0, http_client=web
        )
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._loop.run_until_complete(self._client.close())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    def chunks(self, body: dict[str, Any]) -> Iterator[Any]:
        """Yield the chunks of one reply as they come (see `framing`), None after each `PULSE` of silence.

        Closing the iterator ends the request. Raises what the SDK and `framing` raise.
        """
        arrived: asyncio.Queue[Any] = asyncio.Queue(_AHEAD)
        reader = self._loop.create_task(self._read(body, arrived))
        try:
            # The loop runs only while the caller waits for a chunk: the caller is outside it, and may use a database
            # there.
            while (chunk := self._loop.run_until_complete(_next(arrived))) is not _END:
                if isinstance(chunk, Exception):
                    raise chunk
                yield chunk
        finally:
            # Closes the socket in any state: connecting, waiting, reading. Otherwise the provider would write on, and
            # be paid.
            reader.cancel()
            self._loop.run_until_complete(asyncio.wait([reader]))

    async def _read(self, body: dict[str, Any], arrived: asyncio.Queue[Any]) -> None:
        try:
            asked = self._client.chat.completions.with_streaming_response.create(**body, stream=True)
            async with asked as answer:
                # A web page is never a reply, and its text would hide the cause.
                if answer.headers.get("content-type", "").startswith("text/html"):
                    raise BackboneRefused(
                        f"{host_of(self._provider)} answers with a web page where a reply should be. "
                        "Correct OPENAI_BASE_URL: most addresses end in /v1."
                    )
                async for chunk in read_chunks(answer.http_response):
                    await arrived.put(chunk)
        except Exception as error:  # noqa: BLE001  raised again where the chunks are read
            await arrived.put(error)
        else:
            await arrived.put(_END)


@cache
def _load_certificates() -> ssl.SSLContext:
    """Load the trusted certificates of this machine."""
    # Cached: reading them takes longer than a request to a nearby server.
    return httpx2.create_ssl_context()


async def _next(arrived: asyncio.Queue[Any]) -> Any:
    try:
        async with asyncio.timeout(PULSE):
            return await arrived.get()
    except TimeoutError:
        return None
