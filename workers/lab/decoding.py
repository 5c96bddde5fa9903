"""Check and decode the image files of datasets, which are untrusted.

More formats are read here than from programs and people, because datasets are used as they were published.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from PIL import Image, ImageOps, UnidentifiedImageError

from workers import git_lfs
from workers.errors import BrokenImage
from workers.lab.image_headers import FORMATS, explain_scans
from workers.lab.imaging import MAX_ASPECT_RATIO, MAX_SIDE, convert_to_rgb

MAX_FILE_PIXELS = 50_000_000
"""Maximum pixels of an image file of a dataset."""
MAX_PLAIN_PIXELS = 2_000_000
"""Maximum pixels of a PPM, PGM or PBM with values in plain text."""
FILE_FORMATS = (*FORMATS, "GIF", "BMP", "TIFF", "PPM", "AVIF", "JPEG2000")
"""Pillow's names of the formats; its PPM covers PBM, PGM, PNM and PFM."""

_OTHERWISE = "it is no JPEG, PNG, WebP, GIF, BMP, TIFF, PPM, PGM, AVIF or JPEG 2000 image"


def check_file(file: IO[bytes]) -> None:
    """Read only an untrusted file's header. Raises BrokenImage, with the reason, if it is no image that is accepted.

    Damage in the rest of the file shows only on decoding.
    """
    with _open_image(file):
        pass


def decode_file(file: IO[bytes]) -> Image.Image:
    """Return the image in an untrusted file of a dataset: upright, RGB, the first frame, no metadata.

    It is reduced until no side is over `MAX_SIDE`. Raises BrokenImage with the reason.
    """
    with _open_image(file) as image:
        # Before anything is decoded: each scan demands a pass over all pixels.
        if reason := explain_scans(image):
            raise BrokenImage(reason)
        # JPEG can be reduced while it is decoded, which saves most of the time.
        # Twice the final size, so that the reduction that follows still averages.
        image.draft(None, (2 * MAX_SIDE, 2 * MAX_SIDE))
        image.load()
        with suppress(Exception):  # broken metadata does not mean broken pixels
            ImageOps.exif_transpose(image, in_place=True)
        small = _resizable(image)
        small.thumbnail((MAX_SIDE, MAX_SIDE), Image.Resampling.LANCZOS, reducing_gap=2.0)
        return convert_to_rgb(small)


@contextmanager
def _open_image(file: IO[bytes]) -> Iterator[Image.Image]:
    """Open an image of a permitted size without decoding it. Any failure becomes BrokenImage."""
    try:
        with Image.open(file, formats=FILE_FORMATS) as image:
            if reason := _explain_size(*image.size) or _explain_plain(image):
                raise BrokenImage(reason)
            yield image
    except BrokenImage:
        raise
    # Pillow's own limit, which guards against small files of huge images.
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise BrokenImage(f"it has over {MAX_FILE_PIXELS:,} pixels; make it smaller") from None
    except UnidentifiedImageError:
        # `open` has read from the file.
        file.seek(0)
        raise BrokenImage(f"it is {git_lfs.EXPLAINED}" if git_lfs.is_pointer(file.read(64)) else _OTHERWISE) from None
    except Exception as error:
        raise BrokenImage(f"it is damaged ({error})") from error


def _explain_size(width: int, height: int) -> str:
    """Say why an image of this many pixels is refused; "" if it is not."""
    if not 0 < width * height <= MAX_FILE_PIXELS:
        return f"it is {width} x {height} pixels, over {MAX_FILE_PIXELS:,} in all; make it smaller"
    if max(width, height) > MAX_ASPECT_RATIO * min(width, height):
        return f"it is {width} x {height} pixels, over {MAX_ASPECT_RATIO} times as long as wide; crop it"
    return ""


def _explain_plain(image: Image.Image) -> str:
    """Say why a plain-text PPM (read at a million values a second) is refused; "" for others."""
    pixels = image.width * image.height
    # Plain text is read at a million values a second.
    if image.format != "PPM" or pixels <= MAX_PLAIN_PIXELS or image.tile[0].codec_name != "ppm_plain":  # type: ignore[attr-defined]
        return ""
    return f"it is a plain PPM of over {MAX_PLAIN_PIXELS:,} pixels; save it in binary form"


def _resizable(image: Image.Image) -> Image.Image:
    """Return the image in a mode whose pixels can be averaged."""
    if image.mode in {"L", "LA", "RGB", "RGBA", "CMYK", "YCbCr"} and "transparency" not in image.info:
        return image
    # These have more than 8 bits, and Pillow's own conversion would cut them off.
    if image.mode in {"I", "F"} or image.mode.startswith("I;16"):
        return convert_to_rgb(image)
    return image.convert("RGBA" if image.has_transparency_data else "RGB")
