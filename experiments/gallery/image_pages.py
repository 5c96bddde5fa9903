"""Serves images by key, and a page for each. The bytes under a key never change, so a browser asks once."""

from __future__ import annotations

from django.core.files.storage import default_storage
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotModified
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from experiments.core import access
from experiments.core.system_names import Names
from experiments.core.thumbnails import SIZES
from experiments.gallery import usage
from experiments.models import Image

FOREVER = "private, max-age=31536000, immutable"
SOON = "private, max-age=60"
"""For a whole image that stands in for its thumbnail."""


@require_safe
def image(request: HttpRequest, key: str) -> HttpResponse:
    """The PNG. Raises Http404 if no such image is stored."""
    access.require(request)
    return served(request, Image.path_of(key), "image/png", key) or missing()


@require_safe
def thumbnail(request: HttpRequest, key: str, size: int) -> HttpResponse:
    """A small WebP; until a worker has made it, the whole image. Raises Http404 if no such image is stored."""
    access.require(request)
    if size not in SIZES:
        raise Http404(f"Thumbnails are {' or '.join(map(str, SIZES))} pixels wide, not {size}.")
    found = served(request, Image.thumbnail_of(key, size), "image/webp", f"{key}-{size}")
    return found or served(request, Image.path_of(key), "image/png", key, SOON) or missing()


def served(request: HttpRequest, path: str, kind: str, tag: str, kept: str = FOREVER) -> HttpResponse | None:
    """A file of the store, or word that the browser has it; None if it is not there."""
    tag = f'"{tag}"'
    if kept == FOREVER and request.headers.get("If-None-Match") == tag:
        return HttpResponseNotModified(headers={"ETag": tag})
    try:
        with default_storage.open(path) as file:
            data = file.read()
    except FileNotFoundError:
        return None
    return HttpResponse(data, content_type=kind, headers={"Cache-Control": kept, "ETag": tag})


def missing() -> HttpResponse:
    raise Http404("No image is stored under this key.")


@require_safe
def page(request: HttpRequest, key: str) -> HttpResponse:
    """What is known of an image, and every place it was used in."""
    names = Names(access.require(request))
    found = get_object_or_404(Image, pk=key)
    return render(request, "gallery/image_page.html", {"image": found, **usage.read(found, request.GET, names)})
