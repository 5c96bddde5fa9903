"""URLs of an image and of its small versions. Workers make them: the web process decodes no image."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from django.urls import reverse

SIZES = (64, 160, 320)
"""Longest sides in pixels: for lines of lists, and for grids on ordinary and on high-resolution screens."""


BEGINNING = 16
"""Letters of a key that suffice to identify an image."""
ANY = "0" * 64
KEY = re.compile("[0-9a-f]{64}")


def is_key(text: str) -> bool:
    """True if an image could be stored under this text; nothing else gets a URL."""
    return KEY.fullmatch(text) is not None


@cache
def _page_of_any() -> str:
    """Return the URL of the page of the image `ANY`: resolving a URL is slow, and a page shows many images."""
    return reverse("image-page", args=[ANY])


def picture_of(key: str) -> str:
    """Return the URL of a plot point's image. It uses the beginning of the key, since plots have hundreds of points
    and whole keys would be half of their size."""
    return f"{_page_of_any().replace(ANY, key[:BEGINNING]).removesuffix('/')}.webp"


@dataclass(frozen=True)
class ImageUrls:
    """URLs of an image's page, its file, and its small versions."""

    page: str
    file: str
    tiny: str
    small: str
    fine: str

    @classmethod
    def of(cls, key: str) -> ImageUrls:
        page = _page_of_any().replace(ANY, key)
        return cls(page, f"{page.removesuffix('/')}.png", *(f"{page}thumb-{size}.webp" for size in SIZES))
