"""Small versions of images for grids, and the addresses of an image. Workers make them: the web decodes no image."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

SIZES = (160, 320)
"""Longest sides in pixels: for grids on ordinary screens and on fine ones."""


@dataclass(frozen=True)
class Addresses:
    """Of the page of an image, its file, and its small versions."""

    page: str
    file: str
    small: str
    fine: str

    @classmethod
    def of(cls, key: str) -> Addresses:
        """All from one look-up: a page shows many images."""
        page = reverse("image-page", args=[key])
        small, fine = (f"{page}thumb-{size}.webp" for size in SIZES)
        return cls(page, f"{page.removesuffix('/')}.png", small, fine)
