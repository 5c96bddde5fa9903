"""What the bytes of an untrusted image tell before anything is decoded: its pixels, and the scans of a JPEG.

Used by `imaging`, which decodes, and by the sandbox, which bounds what one call may carry.
"""

from __future__ import annotations

import base64
from contextlib import suppress
from functools import partial
from io import BytesIO

from PIL import Image

FORMATS = ("PNG", "JPEG", "WEBP")
"""Formats of which bytes and pixels bound the work of decoding, once the scans of a JPEG are counted."""
MAX_SCANS = 100
"""Most scans of a JPEG; encoders make some ten. Each asks, in a few bytes, for a pass over all pixels."""

_SIGNATURES = (b"\x89PNG", b"\xff\xd8\xff", b"RIFF")
_START_OF_SCAN = b"\xff\xda"
_BLOCK = 1 << 24


def decode_base64(text: str) -> bytes:
    """The bytes in a Base64 string or a `data:` URL. Raises ValueError."""
    return base64.b64decode(text.partition(",")[2] if text.startswith("data:") else text, validate=True)


def count_pixels(text: str) -> int:
    """Pixels of the image in a Base64 text; 0 if it is none, or one that no decoder here takes."""
    start = text.find(",") + 1 if text.startswith("data:") else 0
    with suppress(Exception):  # whatever is wrong with it is said where it is decoded
        if base64.b64decode(text[start : start + 8], validate=True).startswith(_SIGNATURES):
            with Image.open(BytesIO(decode_base64(text)), formats=FORMATS) as image:
                return image.width * image.height
    return 0


def explain_scans(image: Image.Image) -> str:
    """Why an opened JPEG would take too long to decode; "" if it would not, and for other formats.

    In the data of a scan the two bytes of the marker cannot stand: each of them is a scan, or chance elsewhere.
    """
    if image.format not in {"JPEG", "MPO"}:
        return ""
    file = image.fp  # type: ignore[attr-defined]
    file.seek(0)  # loading seeks by itself
    scans = sum(block.count(_START_OF_SCAN) for block in iter(partial(file.read, _BLOCK), b""))
    return f"it is a JPEG of {scans:,} scans, over {MAX_SCANS}; save it as PNG" if scans > MAX_SCANS else ""
