"""The one home of image conversion and masks. Knows no model, no tool and no storage.

Images are `PIL.Image.Image`, mode RGB, at most `MAX_PIXELS` pixels. Activation maps are float arrays (height, width).
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from io import BytesIO
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageOps

from workers.errors import ToolMisuse
from workers.lab.image_headers import FORMATS, decode_base64, explain_scans
from workers.lab.png import encode_rgb
from workers.protocols import WHOLE_IMAGE, Box, LabSettings, MapImage, Picture, Surroundings
from workers.record.systems import SystemSpec

MAX_PIXELS = 4096 * 4096
DIMMED_BRIGHTNESS = 0.55
"""Brightness outside a mask."""
DIMMED_COLOUR = 0.5
"""Share of its colour kept outside a mask; the rest is grey of the same brightness."""
DARK_BRIGHTNESS = 0.25
"""Brightness outside a mask in the published look, in full colour (paper, section 3.1)."""
LUMA_WEIGHTS = (0.299, 0.587, 0.114)
"""Shares of red, green and blue in the brightness of a pixel (ITU-R BT.601)."""
FINER = 4
"""Cells of a drawn map for each cell of a map that covers only part of an image."""
FAINTEST = 0.5
"""Brightness of the least active place of a mask in the weighted look."""
OUTLINES: dict[Surroundings, tuple[int, int, int]] = {
    "dim": (255, 32, 32),
    "dark": (255, 0, 0),
    "weighted": (255, 64, 0),
}
"""Colour of the line around a mask. Each look has its own red, so that the pixels alone tell how the rest was
treated."""

MAX_SIDE = 1024
"""Maximum side in pixels of images of datasets and of programs: larger ones are reduced."""
MAX_ASPECT_RATIO = 50
"""Maximum ratio of the sides: networks enlarge the shorter one."""

# A table for each of the three channels.
_DARKER = [int(value * DARK_BRIGHTNESS) for value in range(256)] * 3
_HALF_DIMMED = tuple(
    DIMMED_BRIGHTNESS / 2 * ((1 - DIMMED_COLOUR) * LUMA_WEIGHTS[column] + DIMMED_COLOUR * (row == column))
    if column < 3
    else 0.0
    for row in range(3)
    for column in range(4)
)
# The matrix halves every byte; doubling afterwards makes all of them even.
_TWICE = [min(2 * value, 255) for value in range(256)] * 3
_FAST = 1
_PLACEHOLDER = 224
_THREADS = 8

Item = TypeVar("Item")
Result = TypeVar("Result")


class UnfitImage(ToolMisuse):
    """Raised for an image that is larger, slimmer or slower to decode than is accepted here."""


def image_key(image: Image.Image) -> str:
    """Return the SHA-256, in hex, of mode, size and pixels."""
    # Not of the file: encoders differ, pixels do not.
    digest = hashlib.sha256(f"{image.mode} {image.width} {image.height}\n".encode())
    digest.update(image.tobytes())
    return digest.hexdigest()


def encode_png(image: Image.Image) -> bytes:
    """Encode as PNG without metadata."""
    if image.mode == "RGB":
        return encode_rgb(image)
    bare = Image.frombytes(image.mode, image.size, image.tobytes())
    # Lightly compressed, since it is made often and read soon.
    buffer = BytesIO()
    bare.save(buffer, "PNG", compress_level=_FAST)
    return buffer.getvalue()


def decode_image(data: bytes) -> Image.Image:
    """Decode an image from untrusted bytes: upright, RGB, without metadata; the first frame of an animation.

    Raises ToolMisuse if the bytes are no PNG, JPEG or WebP image; UnfitImage if it has over `MAX_PIXELS` pixels or too
    many scans, or one side over `MAX_ASPECT_RATIO` times as long as the other.
    """
    try:
        with Image.open(BytesIO(data), formats=FORMATS) as image:
            # Before decoding: a small file can hold an image that fills the memory.
            _check_size(image)
            if reason := explain_scans(image):
                raise UnfitImage(f"The image cannot be taken: {reason}.")
            return convert_to_rgb(ImageOps.exif_transpose(image))
    except ToolMisuse:
        raise
    except Exception as error:
        raise ToolMisuse(
            f"These {len(data)} bytes are not an image that can be read. Send PNG, JPEG or WebP."
        ) from error


def convert_to_rgb(image: Image.Image) -> Image.Image:
    """Return only the pixels, in RGB; transparent parts become white.

    16-bit values keep their upper half. Floats and 32-bit values are divided by their range.
    """
    if type(image) is Image.Image and image.mode == "RGB" and not image.info:
        return image.copy()
    if image.mode in {"I", "F"}:
        values = np.nan_to_num(np.asarray(image, dtype=np.float32))
        highest = float(values.max())
        # The range of such values is not in the file: 1, 255 or 65,535 is the smallest usual one that no value exceeds.
        whole = next((each for each in (1.0, 255.0, 65535.0) if highest <= each), highest)
        if image.mode == "I" and whole == 1:
            whole = 255.0
        image = Image.fromarray((values.clip(0) * (255 / whole)).astype(np.uint8))
    if image.mode.startswith("I;16"):
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    rgb = image.convert("RGB")
    return Image.frombytes("RGB", rgb.size, rgb.tobytes())


def decode_image_base64(text: str) -> Image.Image:
    """Return the image in a Base64 string or a `data:` URL. Raises ToolMisuse if it does not decode to one, as
    above.
    """
    try:
        data = decode_base64(text)
    except ValueError as error:
        raise ToolMisuse(f"The text {_shorten(text)} is not a Base64 image.") from error
    if not data:
        raise ToolMisuse("The text is empty, where a Base64 image is wanted.")
    return decode_image(data)


def reduce_image(image: Image.Image) -> Image.Image:
    """Return the image, or a reduced copy if a side is over `MAX_SIDE`."""
    return image if max(image.size) <= MAX_SIDE else thumbnail(image, MAX_SIDE)


def image_from_text(text: str) -> Image.Image | None:
    """Return the image if the text is one in Base64, else None. Decided by decoding, never by how the text looks.

    Raises UnfitImage for an image of an invalid size.
    """
    # Decided by decoding, never by how the text looks.
    try:
        return decode_image_base64(text)
    # Taken for words, such an image would become a prompt.
    except UnfitImage:
        raise
    except ToolMisuse:
        return None


def parse_image(value: Any, argument: str) -> Image.Image:
    """Return the RGB image that a program passed as a PIL image or a Base64 string.

    Raises ToolMisuse naming `argument`, what came and what is wanted.
    """
    try:
        if isinstance(value, Image.Image):
            _check_size(value)
            return convert_to_rgb(value)
        if isinstance(value, str):
            return decode_image_base64(value)
    except UnfitImage as error:
        raise UnfitImage(f"{argument}: {error}") from error
    except ToolMisuse as error:
        raise ToolMisuse(f"{argument} must be an image, but is the text {_shorten(value)}. {_WANTED}") from error
    raise ToolMisuse(f"{argument} must be an image, but is a {type(value).__name__}. {_WANTED}")


def mask_image(
    image: Image.Image,
    activation_map: NDArray[np.floating[Any]],
    threshold: float,
    part: Box = WHOLE_IMAGE,
    surroundings: Surroundings = "dim",
) -> Image.Image:
    """Return the image with the region above `threshold` bright, the rest dimmed, and a red line between them.

    The map (h, w) is resized bilinearly to the part of the image that it covers (paper, section 3.1). "weighted":
    brightness in the region grows with the activation, from `FAINTEST` at the threshold to full brightness at the
    maximum of this map. If nothing is above the threshold, the image is returned unchanged; also if everything is,
    unless it is weighted.
    """
    image = image.convert("RGB")
    if not (activation_map > threshold).any():  # then no interpolated value is above it either
        return image
    values = _enlarge(activation_map, image.size, part)
    bright = values > threshold  # (height, width)
    if not bright.any():
        return image
    # Just outside the region, which stays untouched.
    line = _grow_mask(bright, max(1, round(min(image.size) / 128))) & ~bright
    rest = dim_image(image) if surroundings == "dim" else image.point(_DARKER)
    if surroundings == "weighted":
        image = _scale_brightness(image, values, threshold)
    rest.paste(image, mask=Image.fromarray(bright))
    rest.paste(OUTLINES[surroundings], mask=Image.fromarray(line))
    return rest


def _scale_brightness(image: Image.Image, values: NDArray[np.floating[Any]], threshold: float) -> Image.Image:
    """Scale brightness (height, width) with values above the threshold, up to their maximum."""
    high = float(values.max(where=np.isfinite(values), initial=threshold))
    shares = np.clip((values - threshold) / (high - threshold), 0, 1) if high > threshold else np.ones_like(values)
    pixels = np.asarray(image) * (FAINTEST + (1 - FAINTEST) * np.nan_to_num(shares))[:, :, None]
    return Image.fromarray(pixels.round().astype(np.uint8))


def draw_map(
    activation_map: NDArray[np.floating[Any]], threshold: float, size: tuple[int, int], part: Box = WHOLE_IMAGE
) -> MapImage | None:
    """Draw the map itself, cell by cell, for an image of `size` (width, height): grey from the lowest value, or 0, to
    the highest. Returns None if the map does not tell where.

    A map that covers part of the image is drawn on cells of the whole, `FINER` times as fine.
    """
    if activation_map.size == 1 or not np.isfinite(activation_map).all():
        return None
    low, high = min(0.0, float(activation_map.min())), float(activation_map.max()) + 0.0  # no negative zero
    if part != WHOLE_IMAGE:
        rows, columns = activation_map.shape
        # Finer cells, or the edge of the covered part would move to the nearest coarse one.
        cells = [round(FINER * count / (part[at + 2] - part[at])) for at, count in ((0, columns), (1, rows))]
        whole = _enlarge(activation_map, (min(cells[0], size[0]), min(cells[1], size[1])), part)
        activation_map = np.where(np.isfinite(whole), whole, low)
    span = high - low
    shares = (activation_map - low) / span if span > 0 else np.zeros(activation_map.shape)
    grey = Image.fromarray(np.rint(255 * shares).astype(np.uint8)).convert("RGB")
    return MapImage(grey, low, high, threshold if math.isfinite(threshold) else high)


def dim_image(image: Image.Image) -> Image.Image:
    """Return an RGB image as it looks outside a mask: less bright and less colourful.

    Every byte of it is even. This is invisible.
    """
    # Even bytes let code tell dimmed pixels from bright ones.
    return image.convert("RGB", _HALF_DIMMED).point(_TWICE)


def surroundings_of(settings: LabSettings, spec: SystemSpec, usual: Surroundings | None = None) -> Surroundings:
    """Return the look of masked images: the system's option "surroundings", else the usual one, else that of the
    settings."""
    asked = spec.options.get("surroundings")
    return asked if asked in OUTLINES else usual or settings.surroundings


def bright_region(
    activation_map: NDArray[np.floating[Any]], threshold: float, size: tuple[int, int], part: Box = WHOLE_IMAGE
) -> NDArray[np.bool_]:
    """Return what `mask_image` leaves bright of an image of `size` (width, height), as (height, width)."""
    return _enlarge(activation_map, size, part) > threshold


def map_in_parallel(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Apply `work` to each item on a few threads."""
    # Threads help here, because Pillow and NumPy release the interpreter's lock.
    threads = min(len(items), os.cpu_count() or 1, _THREADS)
    if threads < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, items))


@cache
def placeholder() -> Image.Image:
    """Return the image that stands in for one that was not made."""
    # An image at all, so that lists keep their lengths.
    image = Image.new("RGB", (_PLACEHOLDER, _PLACEHOLDER), (96, 96, 96))
    drawing = ImageDraw.Draw(image)
    for ends in ((0, 0, _PLACEHOLDER, _PLACEHOLDER), (0, _PLACEHOLDER, _PLACEHOLDER, 0)):
        drawing.line(ends, (160, 160, 160), 5)
    return image


def refused_picture(reason: str) -> Picture:
    """Return the picture for something refused, for this reason."""
    return Picture(placeholder(), refused=reason)


def thumbnail(image: Image.Image, side: int) -> Image.Image:
    """Return a copy that fits into a square of `side` pixels; never enlarged."""
    small = image.copy()
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    return small


def has_valid_size(width: int, height: int) -> bool:
    """True if an image of this size is neither empty, too large nor too slim."""
    return 0 < width * height <= MAX_PIXELS and max(width, height) <= MAX_ASPECT_RATIO * min(width, height)


_WANTED = "Pass a PIL image, or a Base64 string as system.neuron returns."


def _enlarge(activation_map: NDArray[np.floating[Any]], size: tuple[int, int], part: Box) -> NDArray[np.floating[Any]]:
    """Enlarge the map over an image of `size` (width, height); what the map does not cover is minus infinity."""
    small = Image.fromarray(np.ascontiguousarray(activation_map, dtype=np.float32))
    if part == WHOLE_IMAGE:
        return np.asarray(small.resize(size, Image.Resampling.BILINEAR))
    columns, across = _overlap(part[0], part[2], size[0], small.width)
    rows, down = _overlap(part[1], part[3], size[1], small.height)
    wanted = (columns.stop - columns.start, rows.stop - rows.start)
    box = (across[0], down[0], across[1], down[1])
    whole = np.full((size[1], size[0]), -np.inf, dtype=np.float32)
    whole[rows, columns] = np.asarray(small.resize(wanted, Image.Resampling.BILINEAR, box=box))
    return whole


def _overlap(start: float, end: float, side: int, cells: int) -> tuple[slice, tuple[float, float]]:
    """Return the pixels along one side that a map covers, at least one, and the range of its cells over them."""
    first = round(start * side)
    length = max(1, round(end * side) - first)
    pixels = slice(min(max(first, 0), side - 1), max(1, min(first + length, side)))
    scale = cells / length
    return pixels, (max(0.0, (pixels.start - first) * scale), min(cells, (pixels.stop - first) * scale))


def _grow_mask(mask: NDArray[np.bool_], reach: int) -> NDArray[np.bool_]:
    """Grow the mask by `reach` pixels, diagonally too."""
    for down in (True, False):
        done = 0
        while done < reach:
            step = min(reach - done, done + 1)  # as far as leaves no gap, also at the edges
            wider = mask.copy()
            later, earlier = (wider, mask) if down else (wider.T, mask.T)
            later[step:] |= earlier[:-step]
            later[:-step] |= earlier[step:]
            mask, done = wider, done + step
    return mask


def _check_size(image: Image.Image) -> None:
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise UnfitImage(f"An image of {width} x {height} pixels is too large: at most {MAX_PIXELS} in all are taken.")
    if not has_valid_size(width, height):
        raise UnfitImage(
            f"An image of {width} x {height} pixels is too slim: at most {MAX_ASPECT_RATIO} to 1 is taken. "
            "Pad it, or crop it less narrowly."
        )


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
