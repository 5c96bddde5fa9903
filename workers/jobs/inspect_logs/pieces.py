"""JSON written piece by piece, so that a log of thousands of images takes no more memory than one of them."""

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
"""How a text begins in whose place Inspect reads an attachment."""


@dataclass
class Attachments:
    """What stands once in a sample, however often it is shown: pictures, read while they are written."""

    pictures: dict[str, None] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def picture(self, key: str) -> str:
        """What stands for a stored image."""
        self.pictures[key] = None
        return f"{PROTOCOL}{key}"

    def text(self, text: str) -> str:
        """A text as Inspect reads it again: one that looks like an attachment becomes one."""
        if not text.startswith(PROTOCOL):
            return text
        key = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        self.texts[key] = text
        return f"{PROTOCOL}{key}"

    def chunks(self) -> Iterator[bytes]:
        """The JSON object of all that was named so far."""
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
    """A list whose entries are made while it is written."""

    entries: Iterable[Any]


@dataclass(frozen=True)
class StreamedObject:
    """An object that holds such lists."""

    fields: Mapping[str, Any]


def _dump(data: Any) -> bytes:
    """Plain data as JSON in UTF-8. Surrogates, which models write and no reader takes, become question marks."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def chunks(value: Any) -> Iterator[bytes]:
    """JSON in pieces."""
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
        whole = len(rest) - len(rest) % 3
        yield b64encode(rest[:whole])
        rest = rest[whole:]
    yield b64encode(rest)
