"""Imports: bundles, published transcripts and labels of other methods, one file or several, brought by a researcher."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from experiments.core import access, notify, worker_status
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.bodies import UPLOAD
from experiments.core.params import clean_text
from experiments.exchange import form
from experiments.installation.actions import start_job
from experiments.models import Import, Job, VisionModelRow
from experiments.models.exchange import ImportKind
from experiments.models.job import JobKind
from experiments.models.member import Role

SHOWN, LINKS = 100, 12


@require_safe
def page(request: HtmxRequest) -> HttpResponse:
    """The forms and the latest imports; the list alone for htmx."""
    user = access.require(request, Role.RESEARCHER)
    if request.htmx.target == "import-list":
        return render(request, "exchange/imports/list.html", list_imports())
    return render(request, "exchange/imports/page.html", build_context(user, {}))


def build_context(user: User, told: dict[str, Any]) -> dict[str, Any]:
    """All that the page shows; `told` is what was typed, and what is wrong with it. Admins choose an owner."""
    models = VisionModelRow.objects.filter(layers__isnull=False).distinct().values_list("name", flat=True)
    owners = list(form.owners().exclude(pk=user.pk)) if access.role_of(user) == Role.ADMIN else []
    return {"models": list(models), "most": UPLOAD, "owners": owners, "many": form.AT_ONCE, **told, **list_imports()}


def list_imports() -> dict[str, Any]:
    """The team's imports, with the runs that came of them."""
    rows = list(Import.objects.select_related("job__asked_by").prefetch_related("imported_runs")[:SHOWN])
    return {
        "imports": [(row, notify.read_progress(row.job), row.imported_runs.all()[:LINKS]) for row in rows],
        "moving": any(row.job.is_moving for row in rows),
        "worker": worker_status.is_here(),
    }


@require_POST
def bring(request: HttpRequest) -> HttpResponse:
    """Have a worker read files, each by itself: one that cannot be taken does not keep the others."""
    user = access.require(request, Role.RESEARCHER)
    kind, given = request.POST.get("kind", ""), request.FILES.getlist("file")
    names = form.FIELDS[ImportKind(kind)] if kind in ImportKind.values else ()
    typed = {name: request.POST.get(name, "").strip() for name in names}
    problem = form.problem_with(kind, typed, user) or problem_with_number(len(given))
    refused = {} if problem else refusals(kind, given, typed)
    if problem or len(refused) == len(given):
        told = {"problem": problem or listed_problems(refused), "typed": typed}
        told["problem_kind"] = kind if kind in ImportKind.values else ""
        return render(request, "exchange/imports/page.html", build_context(user, told), status=400)
    for place, each in enumerate(given):
        if place in refused:
            messages.warning(request, f"{each.name} is left out. {refused[place][1]}")
        else:
            keep(request, each, kind, typed)
    return redirect("imports")


def problem_with_number(count: int) -> str:
    """Why so many files are not taken; "" if they are."""
    if not count:
        return "Choose a file that is not empty."
    return f"{count} files at once are too many: bring at most {form.AT_ONCE}." if count > form.AT_ONCE else ""


Refusals = dict[int, tuple[str, str]]
"""Place of a file among those brought -> its name, and why it is not taken."""


def refusals(kind: str, given: Sequence[UploadedFile[Any]], typed: Mapping[str, str]) -> Refusals:
    """The files that cannot be taken."""
    found = {
        place: (each.name or "file", form.problem_of(kind, each.name or "file", each.size or 0, typed))
        for place, each in enumerate(given)
    }
    return {place: told for place, told in found.items() if told[1]}


def listed_problems(refused: Refusals) -> str:
    """Why none of them is taken; of a single one its name goes without saying."""
    told = list(refused.values())
    return told[0][1] if len(told) == 1 else " ".join(f"{name}: {problem}" for name, problem in told[:5])


def keep(request: HttpRequest, given: UploadedFile[Any], kind: str, typed: Mapping[str, str]) -> Import:
    """Lay the file where a worker finds it, and ask for the work."""
    options = form.complete_fields(kind, given.name or "", typed)
    name = clean_text(Path(given.name or "file").name, 200)
    folder = Path(settings.STATE) / "imports"
    folder.mkdir(parents=True, exist_ok=True)
    handle, waiting = tempfile.mkstemp(dir=folder, prefix=".")
    try:
        with os.fdopen(handle, "wb") as target:
            for chunk in given.chunks():
                target.write(chunk)
        with transaction.atomic():
            named = {"owner": options["owner"]} if options.get("owner") else {}
            job = start_job(Actor.of(request), Job(kind=JobKind.IMPORT, subject=name, options=options), **named)
            row = Import.objects.create(job=job, kind=kind, name=name, size=given.size or 0)
            Path(waiting).replace(row.path)
        return row
    finally:
        Path(waiting).unlink(missing_ok=True)
