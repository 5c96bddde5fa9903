"""The one home of image conversion and masks. Knows no model, no tool and no storage.

Images are `PIL.Image.Image`, mode RGB, at most `MAX_PIXELS` pixels. Activation maps are float arrays (height, width).
Everybody who turns bytes or text into images calls this, since it takes hostile input.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageOps

from workers.errors import ToolMisuse

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_PIXELS = 4096 * 4096
DARKENED = 0.25
"""Brightness of what lies outside a mask."""
OUTLINE = (255, 0, 0)
"""Colour of the line around a mask; drawn just outside it, so that the region itself stays untouched."""

_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
_FAST = 1


def image_key(image: Image.Image) -> str:
    """SHA-256, in hex, of mode, size and pixels: encoders differ, pixels do not."""
    head = f"{image.mode} {image.width} {image.height}\n".encode()
    return hashlib.sha256(head + image.tobytes()).hexdigest()


def encode_png(image: Image.Image) -> bytes:
    """PNG without metadata, compressed lightly since it is made often and read soon."""
    bare = Image.frombytes(image.mode, image.size, image.tobytes())
    buffer = BytesIO()
    bare.save(buffer, "PNG", compress_level=_FAST)
    return buffer.getvalue()


def decode_image(data: bytes) -> Image.Image:
    """The image in untrusted bytes: upright, RGB, without metadata; the first frame of an animation.

    Raises ToolMisuse if the bytes are no PNG, JPEG, WebP, GIF or BMP image, or hold over `MAX_PIXELS` pixels.
    """
    try:
        with Image.open(BytesIO(data), formats=_FORMATS) as image:
            _check_size(image)
            return to_rgb(ImageOps.exif_transpose(image))
    except ToolMisuse:
        raise
    except Exception as error:
        raise ToolMisuse(
            f"These {len(data)} bytes are not an image that can be read. Send PNG, JPEG or WebP."
        ) from error


def to_rgb(image: Image.Image) -> Image.Image:
    """The pixels alone, in RGB; transparent parts become white."""
    if image.mode.startswith("I;16"):
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    rgb = image.convert("RGB")
    return Image.frombytes("RGB", rgb.size, rgb.tobytes())


def to_base64(image: Image.Image) -> str:
    """The image as a plain Base64 PNG string, as the published API passes masked images."""
    return base64.b64encode(encode_png(image)).decode("ascii")


def from_base64(text: str) -> Image.Image:
    """The image in a Base64 string or a `data:` URL. Raises ToolMisuse if it does not decode to an image."""
    if text.startswith("data:"):
        text = text.partition(",")[2]
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ToolMisuse(f"The text {_short(text)} is not a Base64 image.") from error
    if not data:
        raise ToolMisuse("The text is empty, where a Base64 image is wanted.")
    return decode_image(data)


def image_in(text: str) -> Image.Image | None:
    """The image if the text is one in Base64, else None. Told by decoding it, never by its looks."""
    try:
        return from_base64(text)
    except ToolMisuse:
        return None


def as_image(value: Any, argument: str) -> Image.Image:
    """The RGB image in whatever a program passed for one: a PIL image or a Base64 string.

    Raises ToolMisuse naming `argument`, what came and what is wanted.
    """
    if isinstance(value, Image.Image):
        _check_size(value)
        return to_rgb(value)
    if isinstance(value, str):
        try:
            return from_base64(value)
        except ToolMisuse as error:
            raise ToolMisuse(f"{argument} must be an image, but is the text {_short(value)}. {_WANTED}") from error
    raise ToolMisuse(f"{argument} must be an image, but is a {type(value).__name__}. {_WANTED}")


def masked(image: Image.Image, activation_map: NDArray[np.floating[Any]], threshold: float) -> Image.Image:
    """The image with the region above `threshold` left bright, the rest darkened, and a red line between them.

    The map (h, w) is brought to the image's size bilinearly (paper, section 3.1). Where nothing is above the
    threshold the whole image is dark; where everything is, it comes back as it was.
    """
    small = Image.fromarray(np.ascontiguousarray(activation_map, dtype=np.float32))
    bright = np.asarray(small.resize(image.size, Image.Resampling.BILINEAR)) > threshold  # (height, width)
    line = _grown(bright, max(1, round(min(image.size) / 128))) & ~bright
    image = image.convert("RGB")
    dark = image.point([int(value * DARKENED) for value in range(256)] * 3)
    dark.paste(image, mask=Image.fromarray(bright))
    dark.paste(OUTLINE, mask=Image.fromarray(line))
    return dark


def thumbnail(image: Image.Image, side: int) -> Image.Image:
    """A copy that fits into a square of `side` pixels; never enlarged."""
    small = image.copy()
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    return small


_WANTED = "Pass a PIL image, or a Base64 string as system.neuron returns."


def _grown(mask: NDArray[np.bool_], reach: int) -> NDArray[np.bool_]:
    """The mask and all within `reach` pixels of it, diagonally too."""
    for _ in range(reach):
        for _ in range(2):
            wider = mask.copy()
            wider[1:] |= mask[:-1]
            wider[:-1] |= mask[1:]
            mask = wider.T
    return mask


def _check_size(image: Image.Image) -> None:
    if not 0 < image.width * image.height <= MAX_PIXELS:
        raise ToolMisuse(f"An image of {image.width} x {image.height} pixels is too large: the limit is {MAX_PIXELS}.")


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
