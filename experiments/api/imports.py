"""Imports: files of runs and labels from elsewhere, read in the background."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Field, File, Form, Query, Router, Schema, Status
from ninja.files import UploadedFile
from pydantic import StringConstraints

from experiments.api.cursors import Page, Paging, page
from experiments.api.entry import allow
from experiments.api.fields import NO_NUL, Id, find
from experiments.api.jobs import Progress
from experiments.api.problems import Refusal
from experiments.live import reported
from experiments.models import Import
from experiments.models.api_token import Scope
from experiments.models.job import JobStatus
from experiments.models.member import Role
from experiments.models.transfer import Brought
from experiments.views import imports as files

router = Router(tags=["Imports"])

Told = Annotated[str, StringConstraints(strip_whitespace=True, max_length=4_000, pattern=NO_NUL)]


class About(Schema):
    """What the file is, and what has to be said beside it."""

    kind: Literal["bundle", "history", "labels"]
    model: Told = Field("", description="of a history or labels")
    layer: Told = Field("", description="of a history; of labels whose file names none")
    unit: Told = Field("", description="of a history")
    question: Told = Field("", description="of a history; may be empty")
    agent: Told = Field("", description="of a history; may be empty")
    source: Told = Field("", description="of labels: the method they come from")
    units_from: Literal["", "0", "1"] = Field("", description="of labels: the number of a layer's first unit; else 0")
    owner: Told = Field("", description="who owns the runs, said by an admin; else whoever brings them")


class ImportOut(Schema):
    """A file that somebody brought."""

    id: int
    kind: str
    name: str
    size: int
    asked_by: str | None
    created: datetime
    status: str
    result: str
    progress: Progress | None
    runs: list[int] = Field(description="that came of it so far")


IMPORTS = Import.objects.select_related("job__asked_by").prefetch_related("arrivals")


def import_out(row: Import) -> ImportOut:
    told = reported(row.job.topic) if row.job.status == JobStatus.RUNNING else None
    return ImportOut(
        id=row.pk,
        kind=row.kind,
        name=row.name,
        size=row.size,
        asked_by=row.job.asked_by.get_username() if row.job.asked_by else None,
        created=row.job.created,
        status=row.job.status,
        result=row.job.result,
        progress=Progress(**told) if told else None,
        runs=[arrival.run_id for arrival in row.arrivals.all()],
    )


@router.get("/imports", response=Page[ImportOut], summary="List imports")
def list_imports(request: HttpRequest, paging: Query[Paging]) -> Page[ImportOut]:
    """The team's, the newest first."""
    allow(request)
    return page(request, IMPORTS.all(), ["-pk"], paging, import_out)


@router.get("/imports/{pk}", response=ImportOut, summary="Read how far an import is")
def read_import(request: HttpRequest, pk: Id) -> ImportOut:
    allow(request)
    return import_out(find(IMPORTS.all(), pk=pk))


@router.post("/imports", response={202: ImportOut}, summary="Have a file read")
def create_import(
    request: HttpRequest, about: Form[About], file: File[UploadedFile], response: HttpResponse
) -> Status[ImportOut]:
    """As a form with a file (multipart/form-data). A run that is here already is recognised, so twice is harmless."""
    allow(request, Role.RESEARCHER, Scope.WRITE)
    typed = {name: getattr(about, name) for name in files.FIELDS[Brought(about.kind)]}
    if problem := files.problem_with(about.kind, file, typed):
        raise Refusal("invalid", problem)
    row = files.keep(request, file, about.kind, typed)
    response["Location"] = reverse("api:read_import", args=[row.pk])
    return Status(202, import_out(find(IMPORTS.all(), pk=row.pk)))
