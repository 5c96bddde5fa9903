"""Images of datasets, of all kinds and sizes: what becomes of them when a folder is read."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from PIL import Image

from tests.support.image_folders import RED, opened, plain, reason
from workers.lab import decoding, imaging

GREEN = (10, 250, 20)


@pytest.fixture
def root(tmp_path):
    path = tmp_path / "photos"
    path.mkdir()
    return path


def only(root):
    """The one image of a folder."""
    (image,) = [each.image for each in opened(root)]
    return image


def is_near(pixel, colour, within=12):
    return all(abs(one - other) <= within for one, other in zip(pixel, colour, strict=True))


# --- formats and modes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF", "JPEG2000"])
def test_the_content_says_what_a_file_is_whatever_its_name(root, kind):
    plain().save(root / "picture.txt", kind)
    image = only(root)
    assert (image.mode, image.size) == ("RGB", (20, 10))
    assert is_near(image.getpixel((5, 5)), RED)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", [1, 3, 6, 8, 99])
def test_images_stand_upright(root, kind, orientation):
    image = plain((64, 32))
    image.paste(GREEN, (0, 0, 32, 32))  # the left half
    exif = Image.Exif()
    exif[0x0112] = orientation
    image.save(root / "a", kind, exif=exif, **({"quality": 95} if kind != "PNG" else {}))
    upright = only(root)
    green = {1: (8, 16), 3: (56, 16), 6: (16, 8), 8: (16, 56), 99: (8, 16)}[orientation]
    assert upright.size == ((32, 64) if orientation in {6, 8} else (64, 32))
    assert is_near(upright.getpixel(green), GREEN)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF")
def test_broken_metadata_says_nothing_of_the_pixels(root):
    plain().save(root / "a", "JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xffnonsense")
    assert is_near(only(root).getpixel((5, 5)), RED)


@pytest.mark.parametrize(
    ("mode", "kind", "colour"),
    [
        ("CMYK", "JPEG", RED),
        ("CMYK", "TIFF", RED),
        ("P", "PNG", RED),
        ("P", "GIF", RED),
        ("1", "PNG", (0, 0, 0)),
        ("L", "JPEG", (83, 83, 83)),
        ("LA", "PNG", (83, 83, 83)),
        ("RGBA", "PNG", RED),
        ("RGBA", "WEBP", RED),
        ("YCbCr", "JPEG", RED),
        ("YCbCr", "TIFF", RED),
    ],
)
def test_every_mode_becomes_rgb(root, mode, kind, colour):
    image = plain().quantize() if mode == "P" else plain().convert("L" if mode == "LA" else mode).convert(mode)
    image.save(root / "a", kind)
    assert only(root).mode == "RGB"
    assert is_near(only(root).getpixel((5, 5)), colour)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.full((9, 9), 0x8040, np.uint16), "PNG"),
        (np.full((9, 9), 0x8040, np.uint16), "TIFF"),
        (np.full((9, 9), 128, np.int32), "TIFF"),
        (np.full((9, 9), 128 * 257, np.int32), "TIFF"),
        (np.full((9, 9), 0.5, np.float32), "TIFF"),
        (np.full((9, 9), 128, np.float32), "TIFF"),
    ],
)
def test_deep_images_keep_their_brightness(root, values, kind):
    Image.fromarray(values).save(root / "a", kind)
    assert is_near(only(root).getpixel((5, 5)), (128, 128, 128), within=1)


def test_what_is_transparent_is_white(root):
    Image.new("RGBA", (9, 9), (0, 0, 0, 0)).save(root / "a.png")
    palette = Image.new("P", (9, 9), 0)
    palette.putpalette([0, 0, 0])
    palette.save(root / "b.gif", transparency=0)
    assert [each.image.getpixel((4, 4)) for each in opened(root)] == [(255, 255, 255)] * 2


def test_of_an_animation_the_first_frame_counts(root):
    for kind in ("GIF", "WEBP", "PNG", "TIFF"):
        plain().save(root / kind, kind, save_all=True, append_images=[plain(colour=GREEN)])
    assert all(is_near(each.image.getpixel((5, 5)), RED) for each in opened(root))


def test_a_single_pixel_is_an_image(root):
    plain((1, 1)).save(root / "a.png")
    assert only(root).size == (1, 1)


# --- size --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_large_images_are_reduced(root, kind):
    plain((3000, 1500)).save(root / "a", kind)
    assert only(root).size == (1024, 512)
    assert is_near(only(root).getpixel((500, 200)), RED)


def header_of_png(width, height):
    """The beginning of a PNG that says it is so large."""
    body = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = b"IDAT" + zlib.compress(bytes(1000))
    chunks = [struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part)) for part in (body, data)]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize(
    ("size", "said"),
    [
        ((30_000, 30_000), "it has over 50,000,000 pixels; make it smaller"),
        ((8_000, 8_000), "it is 8000 x 8000 pixels, over 50,000,000 in all; make it smaller"),
        ((30_000, 1), "it is 30000 x 1 pixels, over 50 times as long as wide; crop it"),
    ],
)
def test_images_that_would_fill_the_memory_are_left_out_unread(root, size, said):
    (root / "huge.png").write_bytes(header_of_png(*size))
    assert reason(opened(root)) == f"huge.png: {said}."


@pytest.mark.parametrize(("kind", "values"), [(b"P1", 1), (b"P2", 1), (b"P3", 3)])
def test_a_ppm_of_written_numbers_is_read_while_it_is_small(root, kind, values):
    depth = b"" if kind == b"P1" else b"1\n"
    (root / "a.ppm").write_bytes(kind + b"\n4 2\n" + depth + b"1 " * 8 * values)
    (root / "b.ppm").write_bytes(kind + b"\n2000 2000\n" + depth + b"1 " * 8)
    dataset = opened(root)
    assert dataset[0].image.size == (4, 2)
    assert reason(dataset, 1) == "b.ppm: it is a plain PPM of over 2,000,000 pixels; save it in binary form."


MEASURED = """
import resource, sys, warnings
from pathlib import Path
from workers.errors import BrokenImage
from workers.lab.decoding import decode_file

warnings.simplefilter("ignore")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[1:]:
    try:
        with open(path, "rb") as file:
            decode_file(file)
    except BrokenImage as error:
        print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def test_images_of_30_000_pixels_a_side_take_little_memory(root):
    Image.new("1", (30_000, 30_000)).save(root / "huge.tif")
    Image.new("L", (30_000, 1_600)).save(root / "long.jpg")
    Image.new("L", (65_000, 65_000 // 45)).save(root / "too-long.jpg")
    paths = [root / name for name in ("huge.tif", "long.jpg", "too-long.jpg")]
    child = subprocess.run([sys.executable, "-c", MEASURED, *paths], check=True, capture_output=True, text=True)
    *said, megabytes = child.stdout.splitlines()
    assert said == [
        "it has over 50,000,000 pixels; make it smaller",
        "it is 65000 x 1444 pixels, over 50,000,000 in all; make it smaller",
    ]
    assert int(megabytes) < 100


def test_limits_are_what_the_messages_say():
    assert (decoding.MAX_FILE_PIXELS, imaging.MAX_ASPECT_RATIO, imaging.MAX_SIDE) == (50_000_000, 50, 1024)
