"""Answers that are sent piece by piece, read to their end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from asgiref.sync import async_to_sync


def text_of(answer: Any) -> str:
    """The body; of a stream all of it."""
    if not answer.streaming:
        return str(answer.content.decode("utf-8", "replace"))
    return b"".join(drained(answer.streaming_content)).decode("utf-8", "replace")


def drained(pieces: Any) -> Iterator[bytes]:
    if not hasattr(pieces, "__aiter__"):
        yield from pieces
        return

    async def gathered() -> list[bytes]:
        return [piece async for piece in pieces]

    yield from async_to_sync(gathered)()
