"""Encode images for a provider, and estimate the tokens of images and texts."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from io import BytesIO

from PIL import Image

from workers.lab.imaging import encode_png, thumbnail

SIDE = 768
"""Maximum side of a sent image, in pixels: a model would shrink it to that anyway."""
MAX_PNG = 200_000
"""Bytes above which an image is sent as JPEG."""
_TILE, _TILE_TOKENS, _IMAGE_TOKENS = 512, 170, 85


@dataclass(frozen=True)
class EncodedImage:
    """One image, ready to be sent."""

    url: str
    tokens: int


def encode_image(image: Image.Image) -> EncodedImage:
    """Encode the image in at most `SIDE` x `SIDE` pixels, as PNG, or as JPEG if that would be large."""
    # RGB, since JPEG has no transparency.
    small = thumbnail(image.convert("RGB"), SIDE)
    kind, data = "png", encode_png(small)
    if len(data) > MAX_PNG:
        buffer = BytesIO()
        small.save(buffer, "JPEG", quality=90, subsampling=0)  # full colour, or thin red outlines would blur
        kind, data = "jpeg", buffer.getvalue()
    return EncodedImage(f"data:image/{kind};base64,{base64.b64encode(data).decode()}", count_image_tokens(*small.size))


def count_image_tokens(width: int, height: int) -> int:
    """Estimate the tokens of an image of at most `SIDE` x `SIDE`: 85, and 170 for each tile of 512 x 512 that it
    touches.

    This is how GPT-4o counts at high detail. Others differ: Claude a little more, small OpenAI models 33 times as much.
    """
    # Rounded up: a tile that is touched counts as a whole.
    return _IMAGE_TOKENS + _TILE_TOKENS * -(-width // _TILE) * -(-height // _TILE)


def count_text_tokens(text: str) -> int:
    """Estimate the tokens of a text: one for four letters, one for each character beyond ASCII."""
    # Other scripts take about one token a character.
    wide = len(text) - len(text.encode("ascii", "ignore"))
    return wide + -(-(len(text) - wide) // 4)
