"""Images by the key of their pixels: what is known of each, and its file."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from ninja import Field, Query, Router, Schema

from experiments.api.entry import allow
from experiments.api.fields import ImageKey, find
from experiments.api.problems import Refusal
from experiments.gallery import image_pages as files
from experiments.models import Image

router = Router(tags=["Images"])


def binary(*media_types: str) -> dict[str, Any]:
    """What the document says of an answer that is a file."""
    schema = {"schema": {"type": "string", "format": "binary"}}
    return {"responses": {200: {"content": dict.fromkeys(media_types, schema)}}}


class ImageOut(Schema):
    """What the laboratory remembers of an image."""

    key: str
    width: int
    height: int
    created: datetime
    origin: str
    prompt: str
    seed: int | None
    scene: dict[str, Any] | None
    raw: str | None
    original: str | None


@router.get("/images/{key}", response=ImageOut, summary="Read what is known of an image")
def read_image(request: HttpRequest, key: ImageKey) -> ImageOut:
    """`raw` is the unmasked image of one that is masked, `original` what it was edited from."""
    allow(request)
    row = find(Image.objects.all(), key=key)
    names = ("key", "width", "height", "created", "origin", "prompt", "seed", "scene")
    known = {name: getattr(row, name) for name in names}
    return ImageOut(raw=row.raw or None, original=row.original or None, **known)


@router.get("/images/{key}/file", response=None, openapi_extra=binary("image/png"), summary="Fetch an image")
def fetch_image(request: HttpRequest, key: ImageKey) -> HttpResponseBase:
    """The PNG. Its bytes never change."""
    allow(request)
    try:
        return files.image(request, key)
    except Http404:
        raise Refusal("missing", f"No image is stored under {key}.") from None


class Size(Schema):
    size: Literal[160, 320] = Field(160, description="pixels")


@router.get(
    "/images/{key}/thumbnail",
    response=None,
    openapi_extra=binary("image/webp", "image/png"),
    summary="Fetch a small version of an image",
)
def fetch_thumbnail(request: HttpRequest, key: ImageKey, asked: Query[Size]) -> HttpResponseBase:
    """A WebP; until a worker has made it, the whole image."""
    allow(request)
    try:
        return files.thumbnail(request, key, asked.size)
    except Http404:
        raise Refusal("missing", f"No image is stored under {key}.") from None
