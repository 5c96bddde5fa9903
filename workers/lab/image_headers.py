"""Read pixels and JPEG scans of an untrusted image from its bytes, before anything is decoded.

Used by `imaging`, which decodes, and by the sandbox, which bounds what one call may carry.
"""

from __future__ import annotations

import base64
import re
from contextlib import suppress
from io import BytesIO

from PIL import Image

FORMATS = ("PNG", "JPEG", "WEBP")
"""Formats whose decoding time is bounded by bytes and pixels, once the scans of a JPEG are counted."""
MAX_SCANS = 100
"""Maximum scans of a JPEG; encoders make about ten. A few bytes of each demand a pass over all pixels."""

_SIGNATURES = (b"\x89PNG", b"\xff\xd8\xff", b"RIFF")
_MARKER = re.compile(rb"\xff[^\x00\x01\xd0-\xd8\xff]")
"""The beginning of a segment. The data of a scan contain only other markers, which have no length."""
_SCAN, _END = b"\xda", b"\xd9"


def decode_base64(text: str) -> bytes:
    """Return the bytes in a Base64 string or a `data:` URL. Raises ValueError."""
    return base64.b64decode(text.partition(",")[2] if text.startswith("data:") else text, validate=True)


def count_pixels(text: str) -> int:
    """Return the pixels of the image in a Base64 text; 0 if it is none, or of a format not decoded here."""
    start = text.find(",") + 1 if text.startswith("data:") else 0
    with suppress(Exception):  # decoding reports any error
        # Eight characters of Base64 hold the signature; most texts end here.
        if base64.b64decode(text[start : start + 8], validate=True).startswith(_SIGNATURES):
            with Image.open(BytesIO(decode_base64(text)), formats=FORMATS) as image:
                return image.width * image.height
    return 0


def explain_scans(image: Image.Image) -> str:
    """Say why an opened JPEG would take too long to decode; "" if it would not, and for other formats."""
    if image.format not in {"JPEG", "MPO"}:
        return ""
    file = image.fp  # type: ignore[attr-defined]
    # Pillow keeps the file open until it loads the pixels.
    file.seek(0)  # loading seeks by itself
    if count_scans(file.read()) <= MAX_SCANS:
        return ""
    return f"it is a JPEG of over {MAX_SCANS} scans; save it as PNG"


def count_scans(data: bytes) -> int:
    """Count the scans of a JPEG as a decoder meets them, up to one over `MAX_SCANS`."""
    # The first two bytes are the start of the image.
    at, scans = 2, 0
    while scans <= MAX_SCANS and (found := _MARKER.search(data, at)):
        marker, at = found[0][-1:], found.end()
        # Data after the image, such as a phone's video, are not decoded.
        if marker == _END:
            break
        scans += marker == _SCAN
        # Skips what lies in a segment, such as a thumbnail with scans.
        at += int.from_bytes(data[at : at + 2], "big")
    return scans
