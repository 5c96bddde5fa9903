"""Small versions of images for grids, and the addresses of an image. Workers make them: the web decodes no image."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from django.urls import reverse

SIZES = (160, 320)
"""Longest sides in pixels: for grids on ordinary screens and on fine ones."""


ANY = "0" * 64
KEY = re.compile("[0-9a-f]{64}")


def is_key(text: str) -> bool:
    """Whether an image could be stored under this text: nothing else gets an address."""
    return KEY.fullmatch(text) is not None


@cache
def _page_of_any() -> str:
    """The address of the page of the image `ANY`: a page shows many images, and looking one address up takes long."""
    return reverse("image-page", args=[ANY])


@dataclass(frozen=True)
class ImageUrls:
    """Of the page of an image, its file, and its small versions."""

    page: str
    file: str
    small: str
    fine: str

    @classmethod
    def of(cls, key: str) -> ImageUrls:
        page = _page_of_any().replace(ANY, key)
        small, fine = (f"{page}thumb-{size}.webp" for size in SIZES)
        return cls(page, f"{page.removesuffix('/')}.png", small, fine)
