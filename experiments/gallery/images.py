"""Serve image files by key, and collect all uses of an image. The bytes under a key never change, so browsers
request them once."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from django.core.files.storage import default_storage
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotModified

from experiments.core.paging import Page, count, number_of
from experiments.core.system_names import SystemNameMasker
from experiments.core.thumbnails import SIZES
from experiments.core.visibility import visible_to
from experiments.gallery import observations
from experiments.models import Exemplar, Image, Observation
from workers.errors import Outage

log = logging.getLogger(__name__)

FOREVER = "private, max-age=31536000, immutable"
_AWAY = "This image cannot be had at the moment: the store of images does not answer as it should. Try again later."
# Private also for images: only members of the team may read them.
SOON = "private, max-age=60"
"""For a larger image in place of a thumbnail."""
POLICY = "default-src 'none'; frame-ancestors 'none'"
"""An image needs no resources. A page shows dozens, so the policy is short."""
PER_PAGE = 30
RELATED = 12
"""Masked versions, edits and exemplars shown, the first of each."""


def serve_image(request: HttpRequest, key: str, kept: str = FOREVER) -> HttpResponse:
    """Return the PNG file. Raises Http404 if no such image is stored."""
    found = _serve(request, Image.path_of(key), "image/png", key, kept)
    if found is None:
        raise Http404(f"No image is stored under {key}.")
    return found


def serve_thumbnail(request: HttpRequest, key: str, size: int, kept: str = FOREVER) -> HttpResponse:
    """Return a small WebP; until a worker has made it, a larger file. Raises Http404 if no such image is stored."""
    if size not in SIZES:
        raise Http404(f"Thumbnails are {', '.join(map(str, SIZES))} pixels wide, not {size}.")
    # A larger file replaces a missing thumbnail only until a worker has made it: browsers must ask again.
    soon = SOON if kept == FOREVER else kept
    # The next larger thumbnail may exist already; the whole image always does.
    for each in SIZES[SIZES.index(size) :]:
        path, name = Image.thumbnail_of(key, each), f"{key}-{each}"
        if found := _serve(request, path, "image/webp", name, kept if each == size else soon):
            return found
    return serve_image(request, key, soon)


def _serve(request: HttpRequest, path: str, kind: str, name: str, kept: str) -> HttpResponse | None:
    """Return a file of the store, or a 304 if the browser has it; None if it is missing."""
    tag = f'"{name}"'
    # The bytes under a key never change, so the tag decides without reading the file.
    if kept == FOREVER and request.headers.get("If-None-Match") == tag:
        return HttpResponseNotModified(headers={"ETag": tag})
    try:
        with default_storage.open(path) as file:
            data = file.read()
    except FileNotFoundError:
        return None
    # A bucket may be away: that is no reason to say that the image does not exist.
    except Outage as outage:
        log.warning("%s could not be read: %s", path, outage)
        return HttpResponse(_AWAY, content_type="text/plain; charset=utf-8", status=503)
    headers = {"Cache-Control": kept, "ETag": tag, "Content-Security-Policy": POLICY}
    return HttpResponse(data, content_type=kind, headers=headers)


def find_usage(image: Image, params: Mapping[str, str], names: SystemNameMasker) -> dict[str, Any]:
    """Return the content of an image's page, in a constant number of queries."""
    rows = visible_to(Observation.objects.filter(Q(image=image.key) | Q(masked=image.key)))
    page = Page(number_of(params.get("page", "")), PER_PAGE, count(rows), {})
    # Page 0 is an invalid number in the address: it shows no rows.
    keys = list(rows.order_by("-pk").values_list("pk", flat=True)[page.start : page.end]) if page.number else []
    # A masked image shows the relatives of the image below the mask.
    raw = image.raw or image.key
    origins = Image.objects.in_bulk({key for key in (image.raw, image.original) if key})
    # One more than is shown tells whether there are more.
    masked = list(Image.objects.filter(raw=raw).order_by("-created", "key")[: RELATED + 1])
    # Without masked versions of the edits.
    edits = list(Image.objects.filter(original=raw, raw="").order_by("-created", "key")[: RELATED + 1])
    return {
        "page": page,
        "items": observations.gallery_items(keys),
        "exemplars": exemplars(image, names),
        "raw": origins.get(image.raw),
        "original": origins.get(image.original),
        "masked": masked[:RELATED],
        "edits": edits[:RELATED],
        "more_masked": len(masked) > RELATED,
        "more_edits": len(edits) > RELATED,
    }


def exemplars(image: Image, names: SystemNameMasker) -> dict[str, Any]:
    """Return the units whose exemplar it is and that the viewer may know, strongest first."""
    rows = Exemplar.objects.filter(Q(image=image.key) | Q(masked=image.key)).order_by("-activation", "pk")
    unit = "profile__unit__"
    rows = rows.exclude(names.are_hidden_at(f"{unit}layer__model__name", f"{unit}layer__name", f"{unit}number"))
    related = rows.select_related("profile__unit__layer__model", "profile__dataset")
    shown = list(related.defer("profile__histogram", "profile__unit__layer__names")[: RELATED + 1])
    more = len(shown) > RELATED
    # Counting costs a query only if there are more than are shown.
    return {"shown": shown[:RELATED], "count": rows.count() if more else len(shown)}
