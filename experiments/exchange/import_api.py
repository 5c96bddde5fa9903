"""Imports: files of runs and labels from elsewhere, read in the background."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Field, File, Form, Query, Router, Schema, Status
from ninja.files import UploadedFile
from pydantic import BeforeValidator, StringConstraints

from experiments.api.cursors import ListPage, Paging, page
from experiments.api.entry import allow
from experiments.api.fields import NO_NUL, Id, JobProgress, RowOut, UserName, find
from experiments.core.actors import Actor
from experiments.exchange import actions, form
from experiments.models import Import
from experiments.models.api_token import TokenScope
from experiments.models.exchange import ImportKind
from experiments.models.member import Role

router = Router(tags=["Imports"])

Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=4_000, pattern=NO_NUL)]


class About(Schema):
    """What the file is, and what has to be said beside it."""

    kind: Literal["bundle", "history", "labels"]
    model: Text = Field("", description="of a history or labels")
    layer: Text = Field("", description="of a history; of labels whose file names none")
    unit: Text = Field("", description="of a history; with the layer it may stand in the file's name: layer4_122.json")
    question: Text = Field("", description="of a history: what wrote its replies; may be empty")
    backbone_model: Text = Field("", description="of a history: what wrote its replies; may be empty")
    source: Text = Field("", description="of labels: the method they come from")
    units_from: Literal["", "0", "1"] = Field("", description="of labels: the number of a layer's first unit; else 0")
    owner: Text = Field("", description="who owns the runs, said by an admin; else whoever brings them")


class ImportOut(RowOut):
    """A file that somebody brought."""

    id: int
    kind: str
    name: str
    size: int
    asked_by: UserName | None = Field(validation_alias="job.asked_by")
    created: datetime = Field(validation_alias="job.created")
    status: str = Field(validation_alias="job.status")
    result: str = Field(validation_alias="job.result")
    progress: JobProgress = Field(validation_alias="job")
    runs: Annotated[list[int], BeforeValidator(lambda rows: [each.run_id for each in rows])] = Field(
        validation_alias="imported_runs", description="that came of it so far"
    )


class LeftOut(Schema):
    """A file of several that was not taken."""

    name: str
    problem: str


class BatchOut(Schema):
    """What was begun of several files, in their order, and what was not."""

    imports: list[ImportOut]
    left_out: list[LeftOut]


IMPORTS = Import.objects.select_related("job__asked_by").prefetch_related("imported_runs")


@router.get("/imports", response=ListPage[ImportOut], summary="List imports")
def list_imports(request: HttpRequest, paging: Query[Paging]) -> ListPage[ImportOut]:
    """The team's, the newest first."""
    allow(request)
    return page(request, IMPORTS.all(), ["-pk"], paging, ImportOut.from_orm)


@router.post("/imports", response={202: ImportOut}, summary="Have a file read")
def create_import(
    request: HttpRequest, about: Form[About], file: File[UploadedFile], response: HttpResponse
) -> Status[ImportOut]:
    """As a form with a file (multipart/form-data). A run that is here already is recognised, so twice is harmless."""
    user = allow(request, Role.RESEARCHER, TokenScope.WRITE)
    (row,) = bring_files(request, user, about, [file]).taken
    response["Location"] = reverse("api:read_import", args=[row.pk])
    return Status(202, ImportOut.from_orm(find(IMPORTS.all(), pk=row.pk)))


@router.post("/imports/batch", response={202: BatchOut}, summary="Have several files read")
def create_imports(request: HttpRequest, about: Form[About], file: File[list[UploadedFile]]) -> Status[BatchOut]:
    """The same with the field `file` as often as you like. Each becomes an import of its own; what is said beside them
    holds for all. Files that cannot be taken are named and do not keep the others; if none can, nothing is begun.
    """
    user = allow(request, Role.RESEARCHER, TokenScope.WRITE)
    brought = bring_files(request, user, about, file)
    taken = [row.pk for row in brought.taken]
    left = [LeftOut(name=name, problem=reason) for name, reason in brought.left_out]
    rows = IMPORTS.filter(pk__in=taken).order_by("pk")
    return Status(202, BatchOut(imports=[ImportOut.from_orm(row) for row in rows], left_out=left))


@router.get("/imports/{pk}", response=ImportOut, summary="Read how far an import is")
def read_import(request: HttpRequest, pk: Id) -> ImportOut:
    allow(request)
    return ImportOut.from_orm(find(IMPORTS.all(), pk=pk))


def bring_files(request: HttpRequest, user: User, about: About, files: list[UploadedFile]) -> actions.BroughtFiles:
    typed = {name: getattr(about, name) for name in form.FIELDS[ImportKind(about.kind)]}
    return actions.bring_files(Actor.behind(request, user), about.kind, typed, files)
