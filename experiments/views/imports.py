"""Imports: bundles, published transcripts and labels of other methods, brought by a researcher."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from experiments import access, live, roster
from experiments.models import Import, Job, Model
from experiments.models.job import JobKind, JobStatus
from experiments.models.member import Role
from experiments.models.transfer import Brought
from experiments.transfer.reading import UPLOAD
from experiments.views import jobs

SHOWN, LINKS = 20, 12
FIELDS: dict[Brought, tuple[str, ...]] = {
    Brought.BUNDLE: ("owner",),
    Brought.HISTORY: ("model", "layer", "unit", "question", "agent", "owner"),
    Brought.LABELS: ("model", "source", "layer", "units_from"),
}
"""What has to be said of a file beside it."""
NEEDED: dict[Brought, tuple[str, ...]] = {
    Brought.BUNDLE: (),
    Brought.HISTORY: ("model", "layer", "unit"),
    Brought.LABELS: ("model", "source"),
}
LONGEST = {"question": 4_000}


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """The forms and the latest imports; the list alone for htmx."""
    access.require(request, Role.RESEARCHER)
    if request.headers.get("HX-Target") == "import-list":
        return render(request, "imports/list.html", listed())
    return render(request, "imports/page.html", around({}))


def around(told: dict[str, Any]) -> dict[str, Any]:
    """All that the page shows; `told` is what was typed, and what is wrong with it."""
    models = Model.objects.filter(layers__isnull=False).distinct().values_list("name", flat=True)
    return {"models": list(models), "most": UPLOAD, **told, **listed()}


def listed() -> dict[str, Any]:
    """The team's imports, with the runs that came of them."""
    rows = list(Import.objects.select_related("job__asked_by").prefetch_related("arrivals")[:SHOWN])
    told = {row.pk: live.reported(row.job.topic) for row in rows if row.job.status == JobStatus.RUNNING}
    return {
        "imports": [(row, told.get(row.pk), row.arrivals.all()[:LINKS]) for row in rows],
        "moving": any(row.job.is_moving for row in rows),
        "worker": roster.is_here(),
    }


@require_POST
def bring(request: HttpRequest) -> HttpResponse:
    """Have a worker read a file."""
    access.require(request, Role.RESEARCHER)
    kind, given = request.POST.get("kind", ""), request.FILES.get("file")
    names = FIELDS[Brought(kind)] if kind in Brought.values else ()
    typed = {name: request.POST.get(name, "").strip() for name in names}
    if problem := problem_with(kind, given, typed):
        told = {"problem": problem, "problem_kind": kind if kind in Brought.values else "", "typed": typed}
        return render(request, "imports/page.html", around(told), status=400)
    assert isinstance(given, UploadedFile)
    keep(request, given, kind, typed)
    return redirect("imports")


def problem_with(kind: str, given: object, typed: dict[str, str]) -> str:
    """Why nothing is begun; "" if nothing is in the way."""
    if kind not in Brought.values:
        return "Choose what the file is."
    if not isinstance(given, UploadedFile) or not given.size:
        return "Choose a file that is not empty."
    if given.size > UPLOAD:
        return f"{given.name} has {given.size >> 20:,} MB, at most {UPLOAD >> 20:,} MB are possible: split it."
    for name in NEEDED[Brought(kind)]:
        if not typed[name]:
            return f"Say which {name} it is about."
    if typed.get("units_from", "") not in {"", "0", "1"}:
        return "Units are counted from 0 or from 1."
    if "unit" in typed and not (typed["unit"].isascii() and typed["unit"].isdigit() and len(typed["unit"]) < 10):
        return f"“{typed['unit'][:40]}” is no number of a unit."
    long = [name for name, text in typed.items() if len(text) > LONGEST.get(name, 200) or "\x00" in text]
    return f"The {long[0]} is too long." if long else ""


def keep(request: HttpRequest, given: UploadedFile[Any], kind: str, typed: dict[str, str]) -> Import:
    """Lay the file where a worker finds it, and ask for the work."""
    name = Path(given.name or "file").name[:200].replace("\x00", "")
    folder = Path(settings.STATE) / "imports"
    folder.mkdir(parents=True, exist_ok=True)
    handle, waiting = tempfile.mkstemp(dir=folder, prefix=".")
    try:
        with os.fdopen(handle, "wb") as target:
            for chunk in given.chunks():
                target.write(chunk)
        with transaction.atomic():
            job = jobs.begin(request, Job(kind=JobKind.IMPORT, subject=name, options=typed))
            row = Import.objects.create(job=job, kind=kind, name=name, size=given.size or 0)
            Path(waiting).replace(row.path)
        return row
    finally:
        Path(waiting).unlink(missing_ok=True)
