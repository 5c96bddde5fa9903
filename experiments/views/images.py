"""Serves images by key. The bytes under a key never change, so a browser asks once."""

from __future__ import annotations

from django.core.files.storage import default_storage
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotModified
from django.views.decorators.http import require_safe

from experiments import access
from experiments.models import Image


@require_safe
def image(request: HttpRequest, key: str) -> HttpResponse:
    """The PNG. Raises Http404 if no such image is stored."""
    access.require(request)
    tag = f'"{key}"'
    if request.headers.get("If-None-Match") == tag:
        return HttpResponseNotModified(headers={"ETag": tag})
    try:
        with default_storage.open(Image.path_of(key)) as file:
            data = file.read()
    except FileNotFoundError:
        raise Http404("No image is stored under this key.") from None
    return HttpResponse(
        data, content_type="image/png", headers={"Cache-Control": "private, max-age=31536000, immutable", "ETag": tag}
    )
