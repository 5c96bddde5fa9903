"""Small versions of images for grids, and the addresses of an image. Workers make them: the web decodes no image."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from django.urls import reverse

SIZES = (64, 160, 320)
"""Longest sides in pixels: for lines of lists, for grids on ordinary screens and on fine ones."""


BEGINNING = 16
"""Letters of a key that tell an image from all others."""
ANY = "0" * 64
KEY = re.compile("[0-9a-f]{64}")


def is_key(text: str) -> bool:
    """Whether an image could be stored under this text: nothing else gets an address."""
    return KEY.fullmatch(text) is not None


@cache
def _page_of_any() -> str:
    """The address of the page of the image `ANY`: a page shows many images, and looking one address up takes long."""
    return reverse("image-page", args=[ANY])


def picture_of(key: str) -> str:
    """Where a dot of a plot finds the picture that it stands for. Plots have hundreds, and whole keys are half of what
    a dot weighs: the beginning of one is as good."""
    return f"{_page_of_any().replace(ANY, key[:BEGINNING]).removesuffix('/')}.webp"


@dataclass(frozen=True)
class ImageUrls:
    """Of the page of an image, its file, and its small versions."""

    page: str
    file: str
    tiny: str
    small: str
    fine: str

    @classmethod
    def of(cls, key: str) -> ImageUrls:
        page = _page_of_any().replace(ANY, key)
        return cls(page, f"{page.removesuffix('/')}.png", *(f"{page}thumb-{size}.webp" for size in SIZES))
