"""Exports: files of runs, experiments, observations and labels that a member asked for."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.handlers.asgi import ASGIRequest
from django.db import transaction
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from experiments.core import access, audit, notify, worker_status
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.exchange import export_query
from experiments.exchange.safe_zip import ExchangeError
from experiments.installation.actions import start_job
from experiments.models import Export, Job
from experiments.models.exchange import NOUNS, ExportSubject, Format
from experiments.models.job import MOVING, JobKind, JobStatus

SHOWN = 50
AT_ONCE = 5
"""Exports of one person that may be under way."""
LONGEST = 20_000
"""Characters of a filter: a thousand ticked runs fit."""
CHUNK = 1 << 18


@require_safe
def page(request: HtmxRequest) -> HttpResponse:
    """The form, filled in from the address, and the person's own exports; the list alone for htmx."""
    user = access.require(request)
    if request.htmx.target == "export-list":
        return render(request, "exchange/exports/list.html", list_own(user))
    asked = request.GET.copy()
    what, form = asked.pop("what", [ExportSubject.RUNS])[-1], asked.pop("format", [Format.CSV])[-1]
    return render_page(request, user, str(what), str(form), asked.urlencode())


def render_page(request: HttpRequest, user: User, what: str, form: str, query: str, problem: str = "") -> HttpResponse:
    """The page with these choices, and how much they would hold."""
    what = what if what in ExportSubject.values else ExportSubject.RUNS
    form = form if form in Format.values and form != Format.ZIP else Format.CSV
    count = None
    try:
        count = export_query.select_rows(ExportSubject(what), query, user).count()
    except ExchangeError as error:
        problem = problem or str(error)
    context = {
        "what": what,
        "whats": [
            (key, label, ", ".join(sorted(export_query.KNOWN[ExportSubject(key)])))
            for key, label in ExportSubject.choices
        ],
        "form": form,
        "formats": [choice for choice in Format.choices if choice[0] != Format.ZIP],
        "query": query,
        "parts": [pair for pair in QueryDict(query[:LONGEST]).items() if pair[0] not in export_query.LOOKS and pair[1]],
        "count": count,
        "noun": NOUNS[ExportSubject(what)],
        "problem": problem,
    }
    return render(request, "exchange/exports/page.html", context | list_own(user), status=400 if problem else 200)


def list_own(user: User) -> dict[str, Any]:
    """The person's exports, and how far a worker is with each."""
    rows = list(Export.objects.filter(job__asked_by=user).select_related("job")[:SHOWN])
    return {
        "exports": [(row, notify.read_progress(row.job)) for row in rows],
        "moving": any(row.job.is_moving for row in rows),
        "worker": worker_status.is_here(),
        "now": timezone.now(),
    }


@require_POST
def make(request: HttpRequest) -> HttpResponse:
    """Have a worker write a file."""
    user = access.require(request)
    what, form, query = (request.POST.get(name, "").strip() for name in ("what", "format", "query"))
    if problem := problem_with(user, what, form, query):
        return render_page(request, user, what, form, query, problem)
    form = Format.ZIP if what == ExportSubject.BUNDLE else form
    create_export(request, what, form, query)
    return redirect("exports")


@transaction.atomic
def create_export(request: HttpRequest, what: str, form: str, query: str) -> Export:
    """An export of the person who asks, of which a worker is told."""
    job = start_job(Actor.of(request), Job(kind=JobKind.EXPORT, subject=f"{ExportSubject(what).label} as {form}"))
    return Export.objects.create(job=job, what=what, format=form, query=query)


def problem_with(user: User, what: str, form: str, query: str) -> str:
    """Why nothing is begun; "" if nothing is in the way."""
    if what not in ExportSubject.values:
        return "Choose what to export."
    if what != ExportSubject.BUNDLE and form not in set(Format.values) - {Format.ZIP}:
        return "Choose a format: CSV, JSON Lines or Parquet."
    if len(query) > LONGEST:
        return f"The filter has {len(query):,} characters, at most {LONGEST:,} are possible."
    if Export.objects.filter(job__asked_by=user, job__status__in=MOVING).count() >= AT_ONCE:
        return f"{AT_ONCE} exports of yours are under way: wait for one, or stop it."
    try:
        return (
            ""
            if export_query.select_rows(ExportSubject(what), query, user).exists()
            else "Nothing matches: the file would be empty."
        )
    except ExchangeError as error:
        return str(error)


@require_safe
def file(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The file, for whoever asked for it. Raises Http404 if it is not there (yet, or any more)."""
    export = find_own(request, pk)
    if export.size is None or export.expires < timezone.now() or not export.path.exists():
        raise Http404("The file of this export is not there: it is not ready yet, or it has expired.")
    response = stream_file(request, export.path)
    response.headers["Content-Disposition"] = f'attachment; filename="{export.file_name}"'
    response.headers["Content-Length"] = str(export.path.stat().st_size)
    response.headers["Cache-Control"] = "private, no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def stream_file(request: HttpRequest, path: Path) -> HttpResponseBase:
    """A file in pieces: an ASGI server would read it whole if it were given a plain iterator."""
    if isinstance(request, ASGIRequest):
        return StreamingHttpResponse(read_pieces(path), content_type="application/octet-stream")
    return FileResponse(path.open("rb"), content_type="application/octet-stream")


async def read_pieces(path: Path) -> AsyncIterator[bytes]:
    opened = io.FileIO(path)
    try:
        while piece := await sync_to_async(opened.read)(CHUNK):
            yield piece
    finally:
        opened.close()


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Remove a file; one that is being written is stopped first, and gone once it has been."""
    discard(request, find_own(request, pk))
    return redirect("exports")


def discard(request: HttpRequest, export: Export) -> None:
    """Stop what is being written; remove what is whole, and the file once its row is gone."""
    with transaction.atomic():
        audit.record(request, Verb.EXPORT_DELETED, export)
        moving = Job.objects.filter(pk=export.job_id, status=JobStatus.RUNNING)
        if not moving.update(stop_requested=True):
            export.job.delete()
            transaction.on_commit(partial(export.path.unlink, missing_ok=True))


def find_own(request: HttpRequest, pk: int) -> Export:
    """The export, for the member who asked for it."""
    user = access.require(request)
    return get_object_or_404(Export.objects.select_related("job"), pk=pk, job__asked_by=user)
