"""The image files of datasets, which nobody vouches for: what their headers tell, and what they hold.

More formats are read here than from programs and people, whose images are converted anyway: datasets are files that
lie there as others wrote them. Used by `workers.datasets`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from PIL import Image, ImageOps, UnidentifiedImageError

from workers import git_lfs
from workers.errors import BrokenImage
from workers.lab.image_headers import FORMATS, explain_scans
from workers.lab.imaging import MAX_ASPECT_RATIO, MAX_SIDE, to_rgb

MAX_FILE_PIXELS = 50_000_000
"""Most pixels of an image file of a dataset."""
MAX_PLAIN_PIXELS = 2_000_000
"""Most pixels of a PPM, PGM or PBM whose values are written as numbers."""
FILE_FORMATS = (*FORMATS, "GIF", "BMP", "TIFF", "PPM", "AVIF", "JPEG2000")
"""Pillow's names of the formats; its PPM are PBM, PGM, PNM and PFM too."""

_OTHERWISE = "it is no JPEG, PNG, WebP, GIF, BMP, TIFF, PPM, PGM, AVIF or JPEG 2000 image"


def check_file(file: IO[bytes]) -> None:
    """Read an untrusted file's header alone. Raises BrokenImage, with the reason, if it is not that of an image that
    `decode_file` takes; what is wrong with the rest of the file only decoding tells."""
    with _open_image(file):
        pass


def decode_file(file: IO[bytes]) -> Image.Image:
    """The image in an untrusted file of a dataset: upright, RGB, the first frame, no metadata.

    It is reduced until no side is over `MAX_SIDE`, JPEG while it is decoded. Raises BrokenImage with the reason if the
    file is no image of `FILE_FORMATS`, is damaged, too large or too slim.
    """
    with _open_image(file) as image:
        if reason := explain_scans(image):
            raise BrokenImage(reason)
        image.draft(None, (2 * MAX_SIDE, 2 * MAX_SIDE))
        image.load()
        with suppress(Exception):  # broken metadata says nothing of the pixels
            ImageOps.exif_transpose(image, in_place=True)
        small = _resizable(image)
        small.thumbnail((MAX_SIDE, MAX_SIDE), Image.Resampling.LANCZOS, reducing_gap=2.0)
        return to_rgb(small)


@contextmanager
def _open_image(file: IO[bytes]) -> Iterator[Image.Image]:
    """The image, not decoded yet, of a size that is taken. Whatever fails meanwhile becomes BrokenImage."""
    try:
        with Image.open(file, formats=FILE_FORMATS) as image:
            if reason := _explain_size(*image.size) or _explain_plain(image):
                raise BrokenImage(reason)
            yield image
    except BrokenImage:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise BrokenImage(f"it has over {MAX_FILE_PIXELS:,} pixels; make it smaller") from None
    except UnidentifiedImageError:
        file.seek(0)
        raise BrokenImage(f"it is {git_lfs.EXPLAINED}" if git_lfs.is_pointer(file.read(64)) else _OTHERWISE) from None
    except Exception as error:
        raise BrokenImage(f"it is damaged ({error})") from error


def _explain_size(width: int, height: int) -> str:
    """Why an image of so many pixels is not taken; "" if it is."""
    if not 0 < width * height <= MAX_FILE_PIXELS:
        return f"it is {width} x {height} pixels, over {MAX_FILE_PIXELS:,} in all; make it smaller"
    if max(width, height) > MAX_ASPECT_RATIO * min(width, height):
        return f"it is {width} x {height} pixels, over {MAX_ASPECT_RATIO} times as long as wide; crop it"
    return ""


def _explain_plain(image: Image.Image) -> str:
    """Why a PPM of written numbers, which are read a million a second, is not taken; "" for others."""
    pixels = image.width * image.height
    if image.format != "PPM" or pixels <= MAX_PLAIN_PIXELS or image.tile[0].codec_name != "ppm_plain":  # type: ignore[attr-defined]
        return ""
    return f"it is a plain PPM of over {MAX_PLAIN_PIXELS:,} pixels; save it in binary form"


def _resizable(image: Image.Image) -> Image.Image:
    """The image in a mode whose pixels can be averaged."""
    if image.mode in {"L", "LA", "RGB", "RGBA", "CMYK", "YCbCr"} and "transparency" not in image.info:
        return image
    if image.mode in {"I", "F"} or image.mode.startswith("I;16"):
        return to_rgb(image)
    return image.convert("RGBA" if image.has_transparency_data else "RGB")
