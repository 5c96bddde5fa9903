"""Exports: files of runs, experiments, observations and labels, written in the background."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from ninja import Field, Query, Router, Status
from pydantic import StringConstraints

from experiments.api.cursors import ListPage, Paging, page
from experiments.api.entry import allow
from experiments.api.fields import NO_NUL, Body, Id, RowOut, binary, find
from experiments.api.once import answer_once
from experiments.api.problems import Refusal
from experiments.core.errors import InvalidInput
from experiments.exchange import export_pages as files
from experiments.installation.api import JobProgress
from experiments.models import Export
from experiments.models.api_token import TokenScope
from experiments.models.exchange import Format
from experiments.models.member import Role

router = Router(tags=["Exports"])

Filter = Annotated[str, StringConstraints(max_length=files.LONGEST, pattern=NO_NUL)]


class ExportIn(Body):
    """What a file is to hold."""

    what: Literal["bundle", "runs", "experiments", "observations", "labels", "reviews", "verdicts", "agreement"] = (
        Field(examples=["runs"])
    )
    format: Literal["jsonl", "csv", "parquet", "zip"] = Field("jsonl", description="a bundle is always a zip")
    query: Filter = Field("", description="which of them, as in the address of the page", examples=["status=concluded"])


class ExportOut(RowOut):
    """A file that you asked for."""

    id: int
    what: str
    format: str
    query: str
    status: str = Field(validation_alias="job.status")
    result: str = Field(validation_alias="job.result")
    progress: JobProgress = Field(validation_alias="job")
    count: int | None
    size: int | None = Field(description="bytes; null until the file is whole")
    expires: datetime
    file: str | None = Field(None, description="where to fetch it, once it is whole")


def export_out(row: Export) -> ExportOut:
    shown = ExportOut.from_orm(row)
    shown.file = None if row.size is None else reverse("api:fetch_export", args=[row.pk])
    return shown


def find_export(user: User, pk: int) -> Export:
    return find(Export.objects.select_related("job").filter(job__asked_by=user), pk=pk)


@router.get("/exports", response=ListPage[ExportOut], summary="List your exports")
def list_exports(request: HttpRequest, paging: Query[Paging]) -> ListPage[ExportOut]:
    """The newest first."""
    user = allow(request)
    rows = Export.objects.filter(job__asked_by=user).select_related("job")
    return page(request, rows, ["-pk"], paging, export_out)


@router.post("/exports", response={202: ExportOut}, summary="Have a file written")
def create_export(request: HttpRequest, asked: ExportIn, response: HttpResponse) -> Status[dict[str, Any]]:
    """In the background: read the export until its `file` is there."""
    user = allow(request, Role.VIEWER, TokenScope.WRITE)
    return Status(202, answer_once(request, response, user, lambda: start_export(request, user, asked)))


def start_export(request: HttpRequest, user: User, asked: ExportIn) -> tuple[ExportOut, str]:
    """The export of which a worker is told. Raises Refusal."""
    form = Format.ZIP if asked.what == "bundle" else asked.format
    if problem := files.problem_with(user, asked.what, form, asked.query):
        raise InvalidInput(problem)
    row = files.create_export(request, asked.what, form, asked.query)
    return export_out(find_export(user, row.pk)), reverse("api:read_export", args=[row.pk])


@router.get("/exports/{pk}", response=ExportOut, summary="Read how far an export is")
def read_export(request: HttpRequest, pk: Id) -> ExportOut:
    user = allow(request)
    return export_out(find_export(user, pk))


FILE = binary("application/octet-stream")


@router.get("/exports/{pk}/file", response=None, openapi_extra=FILE, summary="Fetch the file of an export")
def fetch_export(request: HttpRequest, pk: Id) -> HttpResponseBase:
    """For a week."""
    find_export(allow(request), pk)
    try:
        return files.file(request, pk)
    except Http404 as error:
        raise Refusal("missing", str(error)) from None


@router.delete("/exports/{pk}", response={204: None}, summary="Remove an export")
def delete_export(request: HttpRequest, pk: Id) -> Status[None]:
    """One that is being written is stopped first."""
    files.discard(request, find_export(allow(request, Role.VIEWER, TokenScope.WRITE), pk))
    return Status(204, None)
