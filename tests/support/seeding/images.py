"""A few hundred small images with files, raw and masked, that seeded observations share."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image as Pillow
from PIL import ImageDraw, ImageEnhance

from experiments.models import Image
from workers.jobs.images import ImagesInDatabase
from workers.protocols import Provenance
from workers.record.origins import Origin

SIDE = 224
COLOURS = ("crimson", "forestgreen", "royalblue", "gold", "purple", "whitesmoke", "dimgray", "darkorange", "hotpink")
GROUNDS = ("#24451f", "#c9b07a", "#e8edf2", "#11131c", "#2f5d7c", "#7d8288")
SHAPES = ("ball", "cube", "cone", "bar")


def draw_images() -> Sequence[tuple[Image, str]]:
    """Each image with the key of its masked one."""
    memory = ImagesInDatabase()
    keys = []
    for ground in GROUNDS:
        for colour in COLOURS:
            for shape in SHAPES:
                image, masked = drawn(ground, colour, shape)
                key = memory.remember(image, Provenance(Origin.GENERATED, f"a {colour} {shape}", 0))
                keys.append((key, memory.remember(masked, Provenance(Origin.GENERATED, raw=key))))
    memory.flush()
    rows = Image.objects.in_bulk([key for key, _ in keys])
    return [(rows[key], masked) for key, masked in keys]


def drawn(ground: str, colour: str, shape: str) -> tuple[Pillow.Image, Pillow.Image]:
    """A thing on a ground, and the same with all but the thing darkened."""
    image = Pillow.new("RGB", (SIDE, SIDE), ground)
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, 0, SIDE, SIDE // 5), fill="#3a4656")
    box = (64, 72, 160, 168)
    if shape == "ball":
        pen.ellipse(box, fill=colour)
    elif shape == "cone":
        pen.polygon([(112, 60), (60, 170), (164, 170)], fill=colour)
    else:
        pen.rectangle(box if shape == "cube" else (40, 100, 184, 140), fill=colour)
    mask = Pillow.new("L", (SIDE, SIDE), 0)
    ImageDraw.Draw(mask).ellipse((44, 44, 180, 190), fill=255)
    return image, Pillow.composite(image, ImageEnhance.Brightness(image).enhance(0.3), mask)
