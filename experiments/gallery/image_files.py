"""Files of images by key, as answers. The bytes under a key never change, so a browser asks once."""

from __future__ import annotations

from django.core.files.storage import default_storage
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotModified

from experiments.core.thumbnails import SIZES
from experiments.models import Image

FOREVER = "private, max-age=31536000, immutable"
SOON = "private, max-age=60"
"""For a whole image that stands in for its thumbnail."""


def serve_image(request: HttpRequest, key: str, kept: str = FOREVER) -> HttpResponse:
    """The PNG. Raises Http404 if no such image is stored."""
    found = _serve(request, Image.path_of(key), "image/png", key, kept)
    if found is None:
        raise Http404(f"No image is stored under {key}.")
    return found


def serve_thumbnail(request: HttpRequest, key: str, size: int, kept: str = FOREVER) -> HttpResponse:
    """A small WebP; until a worker has made it, the whole image. Raises Http404 if no such image is stored."""
    if size not in SIZES:
        raise Http404(f"Thumbnails are {' or '.join(map(str, SIZES))} pixels wide, not {size}.")
    found = _serve(request, Image.thumbnail_of(key, size), "image/webp", f"{key}-{size}", kept)
    return found or serve_image(request, key, SOON if kept == FOREVER else kept)


def _serve(request: HttpRequest, path: str, kind: str, name: str, kept: str) -> HttpResponse | None:
    """A file of the store, or word that the browser has it; None if it is not there."""
    tag = f'"{name}"'
    if kept == FOREVER and request.headers.get("If-None-Match") == tag:
        return HttpResponseNotModified(headers={"ETag": tag})
    try:
        with default_storage.open(path) as file:
            data = file.read()
    except FileNotFoundError:
        return None
    return HttpResponse(data, content_type=kind, headers={"Cache-Control": kept, "ETag": tag})
