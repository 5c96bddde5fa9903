"""Images whose bytes are few and whose decoding is not: solid PNGs, and JPEGs of very many scans."""

from __future__ import annotations

import base64
import struct
import zlib

SIDE = 4096
"""The largest that one image may be."""


def solid_png(side: int = SIDE, grey: int = 0) -> bytes:
    """A PNG of one grey; 4096 x 4096 pixels take 17 kB."""
    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    pixels = zlib.compress((b"\0" + bytes([grey]) * side) * side, 9)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")


def many_scans(scans: int, side: int = SIDE) -> bytes:
    """A progressive JPEG of grey pixels; each of its empty scans takes a few bytes, and a pass over all blocks."""
    blocks = (side // 8) ** 2
    tables = _segment(0xDB, b"\0" + b"\1" * 64) + _segment(0xC2, struct.pack(">BHHB", 8, side, side, 1) + b"\1\x11\0")
    tables += _segment(0xC4, b"\0\1" + bytes(15) + b"\0") + _segment(0xC4, b"\x10\0\1" + bytes(14) + b"\xe0")
    bits, left = "", blocks
    while left > 0:  # runs of empty blocks, 16,384 to 32,767 at a time
        run = min(left, 32767)
        bits += "00" + format(max(0, run - 16384), "014b")
        left -= max(run, 16384)
    bits += "1" * (-len(bits) % 8)
    empty = bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8)).replace(b"\xff", b"\xff\0")
    first = _segment(0xDA, b"\1\1\0\0\0\0") + bytes(-(-blocks // 8))
    return b"\xff\xd8" + tables + first + (_segment(0xDA, b"\1\1\0\1\x3f\0") + empty) * scans + b"\xff\xd9"


def as_text(data: bytes) -> str:
    """The bytes as programs send them."""
    return base64.b64encode(data).decode("ascii")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))


def _segment(marker: int, data: bytes) -> bytes:
    return b"\xff" + bytes([marker]) + struct.pack(">H", len(data) + 2) + data
