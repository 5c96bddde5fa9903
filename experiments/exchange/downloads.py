"""Send the file of an export, in pieces, to the person who created it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.handlers.asgi import ASGIRequest
from django.db.models import QuerySet
from django.http import FileResponse, Http404, HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone

from experiments.core import transfers
from experiments.models import Export

CHUNK = 1 << 18


def list_own_exports(user: User) -> QuerySet[Export]:
    """Return the exports that this person created. No other user may see them."""
    return Export.objects.filter(job__asked_by=user).select_related("job")


def send_file(request: HttpRequest, export: Export) -> HttpResponseBase:
    """Return the file as a download. Raises Http404 if it is not ready or has expired."""
    if export.size is None or export.expires < timezone.now() or not transfers.file_exists(export.place):
        raise Http404("The file of this export is not there: it is not ready yet, or it has expired.")
    response: HttpResponseBase
    if isinstance(request, ASGIRequest):  # Django reads a synchronous iterator into memory under ASGI
        response = StreamingHttpResponse(_read_pieces(export.place), content_type="application/octet-stream")
    else:
        response = FileResponse(transfers.stream(export.place), content_type="application/octet-stream")
    response.headers["Content-Disposition"] = f'attachment; filename="{export.file_name}"'
    response.headers["Content-Length"] = str(export.size)
    response.headers["Cache-Control"] = "private, no-store"
    # Exports contain text of other people: browsers must not guess a type and show it
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


async def _read_pieces(place: str) -> AsyncIterator[bytes]:
    opened = await sync_to_async(transfers.stream)(place)
    try:
        while piece := await sync_to_async(opened.read)(CHUNK):
            yield piece
    finally:
        opened.close()
