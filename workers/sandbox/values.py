"""Encode plain data, images and arrays as a msgpack header and a tail of long texts, bytes and raw pixels.

The tail is read in the order in which the header mentions its pieces. Values are None, booleans, numbers, text, bytes,
lists, tuples, dicts and PIL images; NumPy arrays too if both ends are the guest (its kept state). The callers, `wire`
and `saved_state`, bound how much may be sent or read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from msgspec.msgpack import Ext
from PIL import Image

Buffer = bytes | bytearray | memoryview

STATE_PIXELS = 1 << 28
"""Maximum pixels of an image in kept state, which only the guest reads."""

DEPTH = 32
"""Maximum nesting of lists and dicts."""

_SHORT = 256
_IMAGE, _TEXT, _BYTES, _TUPLE, _ARRAY = 1, 2, 3, 4, 5
_SIZE = struct.Struct(">I")
_PIXELS = struct.Struct(">BII")
_MODES = ("L", "LA", "RGB", "RGBA")  # each one as long as its pixel has bytes


class WireError(Exception):
    """Raised when bytes are not what the wire allows; the message says what is wrong with them."""


class SendError(Exception):
    """Raised when a value cannot travel; the message says which and what to send instead."""


class TooLargeError(SendError):
    """Raised when a value could travel if it were smaller."""


def encode_state(values: Mapping[str, Any]) -> bytes:
    """Encode named values, arrays included, as bytes. Raises SendError."""
    packer = Packer(STATE_PIXELS, arrays=True)
    header = packer.encode(values)
    return b"".join([_SIZE.pack(len(header)), header, *packer.tail])


def decode_state(data: bytes) -> dict[str, Any]:
    """Decode the bytes of `encode_state`."""
    # Called in the child alone, so the result is bounded by the child's memory.
    view = memoryview(data)
    header = _SIZE.unpack(view[:4])[0] + 4
    values = decode(view[4:header], view[header:], STATE_PIXELS, arrays=True)
    return msgspec.convert(values, dict[str, Any], strict=True)


def decode(header: Buffer, tail: memoryview, pixels: int, arrays: bool = False) -> Any:
    """Decode plain data and images from a header and its tail; raises nearly anything on hostile bytes."""
    unpacker = _Unpacker(tail, pixels, arrays)
    value = unpacker.decode(header)
    if unpacker.position != len(tail):
        raise WireError("bytes that nothing refers to")
    _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    """Refuse nesting that would overflow the stack of code that prints or walks the value."""
    level = [value]
    for _ in range(DEPTH + 2):  # the message and its field are around the values
        level = [item for one in level for item in _items_of(one)]
        if not level:
            return
    raise WireError(f"values nest deeper than {DEPTH} levels")


def _items_of(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


@dataclass
class Packer:
    """Writes one header and collects its tail."""

    pixels: int
    arrays: bool = False
    tail: list[Buffer] = field(default_factory=list)
    size: int = 0

    def encode(self, value: Any) -> bytes:
        try:
            return msgspec.msgpack.encode(self.lower(value, 0))
        except (OverflowError, UnicodeError, RecursionError, TypeError) as error:
            raise SendError(f"it cannot travel: {error}") from error

    def lower(self, value: Any, depth: int) -> Any:
        """Return the value with everything large or unknown to msgpack replaced by a reference to the tail."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            # Subclasses, such as np.float64 and members of an IntEnum, become plain numbers.
            return int(value) if isinstance(value, int) else float(value)
        if depth > DEPTH:
            raise SendError(f"lists nest deeper than {DEPTH} levels")
        if isinstance(value, str | bytes | bytearray):
            # Long texts go into the tail: a header may be small only.
            if len(value) <= _SHORT:
                return str(value) if isinstance(value, str) else bytes(value)
            data = value.encode() if isinstance(value, str) else value
            return self._append(_TEXT if isinstance(value, str) else _BYTES, _SIZE.pack(len(data)), data)
        if isinstance(value, Mapping):
            return {self._key(key): self.lower(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            items = [self.lower(item, depth + 1) for item in value]
            # msgpack knows no tuples, and published programs tell them from lists.
            return Ext(_TUPLE, msgspec.msgpack.encode(items)) if isinstance(value, tuple) else items
        return self._rich(value, depth)

    def _key(self, key: Any) -> Any:
        key = key.item() if isinstance(key, np.generic) else key
        if not isinstance(key, str | int | float | bool | None):
            raise SendError(f"a dict with a key of type {type(key).__name__}; use texts or numbers as keys")
        return key

    def _rich(self, value: Any, depth: int) -> Any:
        if isinstance(value, Image.Image):
            return self._image(value)
        if isinstance(value, np.generic):
            return self.lower(value.item(), depth + 1)
        if isinstance(value, np.ndarray) and self.arrays and not value.dtype.hasobject:
            head = msgspec.msgpack.encode((value.dtype.str, value.shape))
            return self._append(_ARRAY, head, value.tobytes())
        if isinstance(value, np.ndarray) and value.ndim <= 1 and not value.dtype.hasobject:
            return self.lower(value.tolist(), depth)
        raise SendError(
            f"{_describe(value)} cannot travel; give numbers, texts, PIL images, or lists and dicts of them"
        )

    def _image(self, image: Image.Image) -> Ext:
        if not 0 < image.width * image.height <= self.pixels:
            raise TooLargeError(
                f"an image of {image.width} by {image.height} pixels, at most {self.pixels} in all; resize it"
            )
        if image.mode not in _MODES:
            image = image.convert("RGBA" if "transparency" in image.info else "RGB")
        return self._append(_IMAGE, _PIXELS.pack(_MODES.index(image.mode), *image.size), image.tobytes())

    def _append(self, code: int, head: bytes, data: bytes | bytearray) -> Ext:
        self.tail.append(data)
        self.size += len(data)
        return Ext(code, head)


@dataclass
class _Unpacker:
    """Reads one header and takes the tail piece by piece."""

    tail: memoryview
    pixels: int
    arrays: bool
    position: int = 0
    depth: int = 0

    def decode(self, header: Buffer) -> Any:
        return msgspec.msgpack.decode(header, ext_hook=self._rich)

    def _rich(self, code: int, data: memoryview) -> Any:
        if code == _IMAGE:
            return self._image(*_PIXELS.unpack(data))
        if code == _TEXT:
            return str(self._take(_SIZE.unpack(data)[0]), "utf-8")
        if code == _BYTES:
            return bytes(self._take(_SIZE.unpack(data)[0]))
        if code == _TUPLE:
            self.depth += 1
            # Each tuple is decoded inside the call for the one around it, which could overflow the stack.
            if self.depth > DEPTH:
                raise WireError(f"tuples nest deeper than {DEPTH} levels")
            items = tuple(self.decode(data))
            self.depth -= 1
            return items
        if code == _ARRAY and self.arrays:
            name, shape = msgspec.msgpack.decode(data, type=tuple[str, tuple[int, ...]])
            dtype = np.dtype(name)
            # With exact integers: a product of 64 bits could overflow to a small size.
            count = int(np.prod(shape, dtype=object))
            return np.frombuffer(self._take(count * dtype.itemsize), dtype).reshape(shape).copy()
        raise WireError(f"an unknown kind of value ({code})")

    def _take(self, size: int) -> memoryview:
        piece = self.tail[self.position : self.position + size]
        if len(piece) != size:
            raise WireError("a value longer than its frame")
        self.position += size
        return piece

    def _image(self, mode: int, width: int, height: int) -> Image.Image:
        if not 0 < width * height <= self.pixels:
            raise WireError(f"an image of {width} by {height} pixels, at most {self.pixels} in all")
        name = _MODES[mode]
        return Image.frombytes(name, (width, height), self._take(width * height * len(name)))


def _describe(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} (Image.fromarray(a) makes an image of it, a.tolist() a list)"
    return f"a value of type {type(value).__name__}"
