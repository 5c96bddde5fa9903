"""Read a reply's frame: a stream of events, or one JSON body if a server ignores that a stream was asked for.

Both become chunks of a stream, for a single reader.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import openai
from openai._streaming import SSEDecoder
from openai.types.chat import ChatCompletionChunk

from workers.backbones.openai.provider_errors import TransientError

DONE = object()
"""Stands for the mark with which a server ends a reply; an interrupted one has none."""
MAX_BODY_BYTES = 8_000_000
"""Maximum length of one JSON body; a longer one does not end."""


async def read_chunks(answer: httpx2.Response) -> AsyncIterator[Any]:
    """Yield the chunks of an answer as they come, and DONE if the server marks the end.

    Raises TransientError, openai.APIError with the provider's words, and ValueError for what is no JSON.
    """
    pieces = answer.aiter_bytes()
    try:
        head = b""
        async for piece in pieces:
            head = piece.lstrip()
            if head:
                break
        # The content type is ignored: proxies name one and send the other.
        if head[:1] in (b"{", b"["):
            yield _open_body(await _read_whole(head, pieces), answer.request)
            yield DONE
            return
        # The piece that was read to decide is put back.
        async for event in SSEDecoder().aiter_bytes(_put_before(head, pieces)):
            if event.data.startswith("[DONE]"):
                yield DONE
                # Servers may keep the connection open after the mark.
                return
            if event.data:
                yield _make_chunk(json.loads(event.data), answer.request)
    except httpx2.TransportError as error:
        raise openai.APIConnectionError(request=answer.request) from error


async def _put_before(head: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield head
    async for piece in pieces:
        yield piece


async def _read_whole(head: bytes, pieces: AsyncIterator[bytes]) -> bytes:
    body = bytearray(head)
    async for piece in pieces:
        body += piece
        if len(body) > MAX_BODY_BYTES:
            raise TransientError(f"did not end its reply within {MAX_BODY_BYTES:,} bytes")
    return bytes(body)


def _open_body(body: bytes, request: httpx2.Request) -> Any:
    """Return the finished reply of a body as the one chunk of a stream."""
    data = json.loads(body)
    if isinstance(data, list) and len(data) == 1:  # Gemini wraps its errors like this
        data = data[0]
    for choice in data.get("choices") or () if isinstance(data, dict) else ():
        # The finished reply has the form of one large piece.
        if isinstance(choice, dict) and "message" in choice:
            choice["delta"] = choice.pop("message")
    return _make_chunk(data, request)


def _make_chunk(data: Any, request: httpx2.Request) -> Any:
    """Return the object as a chunk. Nothing of it is checked; raises openai.APIError if it is an error instead."""
    if not isinstance(data, dict):
        return data
    error = data.get("error")
    if not error and "choices" not in data and any(data.get(name) for name in ("message", "detail")):
        error = data
    # Whatever the HTTP status: some servers and proxies send an error with 200.
    if error:
        raise openai.APIError("An error stands where a reply should be.", request, body=error)
    return ChatCompletionChunk.construct(**data)
