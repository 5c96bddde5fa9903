"""Write JSON in pieces, so that a log with thousands of images is never in memory as a whole."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from experiments.exchange.export_bundle import pixels

Json = dict[str, Any]

PROTOCOL = "attachment://"
"""Prefix of a text that Inspect replaces by an attachment."""


@dataclass
class Attachments:
    """Contents that are stored once per sample, however often they are shown. Pictures are read while they are
    written."""

    pictures: dict[str, None] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def picture(self, key: str) -> str:
        """Return the reference to a stored image."""
        # An ordered set: pictures are written in the order of their first use.
        self.pictures[key] = None
        return f"{PROTOCOL}{key}"

    def text(self, text: str) -> str:
        """Return a text that Inspect reads back unchanged: a text that looks like a reference becomes an attachment."""
        # Inspect would replace such a text by a missing attachment
        if not text.startswith(PROTOCOL):
            return text
        key = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        self.texts[key] = text
        return f"{PROTOCOL}{key}"

    def chunks(self) -> Iterator[bytes]:
        """Yield the JSON object of all attachments so far."""
        comma = b"{"
        for key in self.pictures:
            yield comma + _dump(key) + b':"data:image/png;base64,'
            yield from _encode_base64(pixels(key))
            yield b'"'
            comma = b","
        for key, text in self.texts.items():
            yield comma + _dump(key) + b":" + _dump(text)
            comma = b","
        yield b"{}" if comma == b"{" else b"}"


@dataclass(frozen=True)
class StreamedList:
    """A list whose entries are created while it is written."""

    entries: Iterable[Any]


@dataclass(frozen=True)
class StreamedObject:
    """An object that contains such lists."""

    fields: Mapping[str, Any]


def _dump(data: Any) -> bytes:
    """Return plain data as JSON in UTF-8. Surrogates, which models may write and readers refuse, become question
    marks."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def chunks(value: Any) -> Iterator[bytes]:
    """Yield a value as JSON in pieces."""
    match value:
        case Attachments():
            yield from value.chunks()
        case StreamedList():
            comma = b"["
            for entry in value.entries:
                yield comma + _dump(entry)
                comma = b","
            yield b"[]" if comma == b"[" else b"]"
        case StreamedObject():
            comma = b"{"
            for name, each in value.fields.items():
                yield comma + _dump(name) + b":"
                yield from chunks(each)
                comma = b","
            yield b"{}" if comma == b"{" else b"}"
        case _:
            yield _dump(value)


def _encode_base64(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        rest += piece
        # Base64 of a multiple of 3 bytes has no padding, so the pieces can be joined
        whole = len(rest) - len(rest) % 3
        yield b64encode(rest[:whole])
        rest = rest[whole:]
    yield b64encode(rest)
