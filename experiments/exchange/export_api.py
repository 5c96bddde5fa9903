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
from experiments.api.fields import NO_NUL, Body, Id, JobProgress, RowOut, binary, find
from experiments.api.once import answer_once
from experiments.api.problems import Refusal
from experiments.core.actors import Actor
from experiments.exchange import actions
from experiments.exchange.downloads import own_exports, send_file
from experiments.models import Export
from experiments.models.api_token import TokenScope
from experiments.models.member import Role

router = Router(tags=["Exports"])

Filter = Annotated[str, StringConstraints(max_length=actions.QUERY_CHARS, pattern=NO_NUL)]


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
    return find(own_exports(user), pk=pk)


@router.get("/exports", response=ListPage[ExportOut], summary="List your exports")
def list_exports(request: HttpRequest, paging: Query[Paging]) -> ListPage[ExportOut]:
    """The newest first."""
    user = allow(request)
    return page(request, own_exports(user), ["-pk"], paging, export_out)


@router.post("/exports", response={202: ExportOut}, summary="Have a file written")
def create_export(request: HttpRequest, asked: ExportIn, response: HttpResponse) -> Status[dict[str, Any]]:
    """In the background: read the export until its `file` is there."""
    user = allow(request, Role.VIEWER, TokenScope.WRITE)

    def make() -> tuple[ExportOut, str]:
        row = actions.make_export(Actor.behind(request, user), asked.what, asked.format, asked.query)
        return export_out(row), reverse("api:read_export", args=[row.pk])

    return Status(202, answer_once(request, response, user, make))


@router.get("/exports/{pk}", response=ExportOut, summary="Read how far an export is")
def read_export(request: HttpRequest, pk: Id) -> ExportOut:
    user = allow(request)
    return export_out(find_export(user, pk))


FILE = binary("application/octet-stream")


@router.get("/exports/{pk}/file", response=None, openapi_extra=FILE, summary="Fetch the file of an export")
def fetch_export(request: HttpRequest, pk: Id) -> HttpResponseBase:
    """For a week."""
    row = find_export(allow(request), pk)
    try:
        return send_file(request, row)
    except Http404 as error:
        raise Refusal("missing", str(error)) from None


@router.delete("/exports/{pk}", response={204: None}, summary="Remove an export")
def delete_export(request: HttpRequest, pk: Id) -> Status[None]:
    """One that is being written is stopped first."""
    user = allow(request, Role.VIEWER, TokenScope.WRITE)
    actions.discard_export(Actor.behind(request, user), find_export(user, pk))
    return Status(204, None)
