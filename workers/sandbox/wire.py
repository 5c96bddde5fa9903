"""The wire between the worker and a program's process: typed messages in length-prefixed frames.

A frame is two big-endian u32 lengths, a header and a tail, as `values` makes them. Used on both sides of the sandbox.
Reading and writing the sockets, and timeouts, are left to the callers.
"""

from __future__ import annotations

import struct
from typing import Any, Literal

import msgspec

from workers.sandbox import values
from workers.sandbox.jail import ChildLimits
from workers.sandbox.values import Buffer

# Far below the size of a frame: a megabyte of msgpack can unfold to a hundred in memory; the tail cannot unfold.
HEADER_BYTES = 1 << 20
"""Maximum size of a header. Enough for 100,000 numbers; unfolds to some hundred megabytes at most."""

STATE_BYTES = 32 << 20
"""Maximum size of what a script may leave to the next."""

PREFIX = struct.Struct(">II")


class FrameLimits(msgspec.Struct, frozen=True):
    """What one frame may hold: bytes in all, pixels in each image."""

    frame_bytes: int = 64 << 20
    pixels: int = 4096 * 4096


START_LIMITS = FrameLimits(frame_bytes=256 << 20)
"""For the one frame that carries a program and its initial state."""


# --- messages ---------------------------------------------------------------------------------------


class WireMessage(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One message; travels as its tag and its fields."""


class StartProgram(WireMessage, frozen=True, tag="start"):
    """Host to guest, once: the program and what it may see."""

    program: str
    names: list[str]
    facts: dict[str, Any]
    state: bytes
    output_bytes: int
    frame_bytes: int
    pixels: int


class CallResult(WireMessage, frozen=True, tag="answer"):
    """Host to guest: what a call returned."""

    value: Any


class CallFailed(WireMessage, frozen=True, tag="raised"):
    """Host to guest: a call raised a ToolError."""

    message: str


class GuestReady(WireMessage, frozen=True, tag="ready"):
    """Guest to host, first: every restriction holds, the program may start."""


class GuestBroken(WireMessage, frozen=True, tag="broken"):
    """Guest to host, instead of Ready: a restriction could not be applied."""

    reason: str


class CallRequest(WireMessage, frozen=True, tag="call"):
    """Guest to host: call a function of the table."""

    name: str
    args: list[Any]
    kwargs: dict[str, Any]


class OutputChunk(WireMessage, frozen=True, tag="output"):
    """Guest to host: bytes the program wrote to stdout or stderr."""

    data: bytes


class ProgramFinished(WireMessage, frozen=True, tag="finished"):
    """Guest to host, last: how the program ended."""

    status: Literal["ok", "program_error", "tool_error", "memory"]
    error: str
    state: bytes


# Launcher and zygote speak over sockets that keep messages apart: these three travel as msgpack, without a frame.


class ForkRequest(WireMessage, frozen=True, tag="fork"):
    """Launcher to zygote, with the child's socket and the socket for its status."""

    limits: ChildLimits


class ChildStarted(WireMessage, frozen=True, tag="forked"):
    """Zygote to launcher: the child runs."""

    pid: int


class ChildEnded(WireMessage, frozen=True, tag="ended"):
    """Zygote to launcher: the child is gone and reaped. `peak_bytes` is its largest resident memory.

    `excess` says which bound it exceeded, if the zygote ended it for that.
    """

    wait_status: int
    peak_bytes: int
    excess: str = ""


GuestMessage = GuestReady | GuestBroken | CallRequest | OutputChunk | ProgramFinished
HostMessage = StartProgram | CallResult | CallFailed


# --- frames -----------------------------------------------------------------------------------------


def pack(message: WireMessage, limits: FrameLimits) -> bytes:
    """Pack the message as a frame. Raises SendError if it cannot travel, TooLargeError if it is too large."""
    packer = values.Packer(limits.pixels)
    header = packer.encode([type(message).__struct_config__.tag, *msgspec.structs.astuple(message)])
    size = len(header) + packer.size
    if len(header) > HEADER_BYTES:
        raise values.TooLargeError(f"its small values take {len(header)} bytes of at most {HEADER_BYTES}; send fewer")
    if size > limits.frame_bytes:
        most = limits.frame_bytes >> 10
        raise values.TooLargeError(f"it takes {size >> 10} KiB, at most {most} KiB travel at once; send fewer images")
    return b"".join([PREFIX.pack(len(header), packer.size), header, *packer.tail])


def lengths(prefix: Buffer, limits: FrameLimits) -> tuple[int, int]:
    """Return the lengths of header and tail, checked before anything is allocated. Raises WireError."""
    header, tail = PREFIX.unpack(prefix)
    if header > HEADER_BYTES or header + tail > limits.frame_bytes:
        raise values.WireError(f"a frame of {header} + {tail} bytes, at most {limits.frame_bytes} in all")
    return header, tail


def unpack(frame: memoryview, header: int, kind: Any, limits: FrameLimits) -> Any:
    """Return the message in a frame; `kind` is its type or a union of types. Raises WireError for any other bytes."""
    try:
        plain = values.decode(frame[:header], frame[header:], limits.pixels)
        return msgspec.convert(plain, kind, strict=True)
    except Exception as error:  # any failure to decode is the sender's error
        raise values.WireError(f"a frame that cannot be read: {str(error)[:200]}") from error
