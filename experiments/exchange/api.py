"""API of exports (files written in the background) and imports (files read in the background)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from ninja import Field, File, Form, Query, Router, Schema, Status
from ninja.files import UploadedFile
from pydantic import BeforeValidator, StringConstraints

from experiments.api.auth import authorize
from experiments.api.cursors import ListPage, Paging, page
from experiments.api.fields import NO_NUL, Body, Id, JobProgress, RowOut, UserName, binary, find
from experiments.api.idempotency import answer_once
from experiments.api.problems import Refusal
from experiments.core.actors import Actor
from experiments.exchange import actions
from experiments.exchange.downloads import list_own_exports, send_file
from experiments.models import Export, Import, Role, TokenScope

router = Router(tags=["Exports"])
IMPORTS = ["Imports"]

Filter = Annotated[str, StringConstraints(max_length=actions.QUERY_CHARS, pattern=NO_NUL)]
FormatName = Literal[
    "jsonl", "csv", "parquet", "zip", "eval", "dataset", "dataset-runs", "cosy", "delphi", "neuronpedia"
]


class ExportIn(Body):
    """What to export."""

    what: Literal[
        "bundle",
        "runs",
        "experiments",
        "observations",
        "labels",
        "evaluations",
        "reviews",
        "verdicts",
        "agreement",
        "study",
    ] = Field(examples=["runs"], description="a study is chosen by query study=3, and names=yes adds names of people")
    format: FormatName = Field(
        "jsonl",
        description="studies are always zips; bundles are zips, or with `eval` a log for `inspect view`, as for "
        "one evaluation (`what` evaluations, `query` evaluation=3); dataset is a folder for Hugging Face datasets with "
        "runs, observations or labels; dataset-runs also holds the full runs; the other formats are for labels",
    )
    query: Filter = Field("", description="filter, as in the address of the page", examples=["status=concluded"])


class ExportOut(RowOut):
    """An export that you created."""

    id: int
    what: str
    format: str
    query: str
    status: str = Field(validation_alias="job.status")
    result: str = Field(validation_alias="job.result")
    progress: JobProgress = Field(validation_alias="job")
    count: int | None
    size: int | None = Field(description="bytes; null until the file is complete")
    expires: datetime
    file: str | None = Field(None, description="address of the file, once it is complete")


def _export_out(row: Export) -> ExportOut:
    shown = ExportOut.from_orm(row)
    shown.file = None if row.size is None else reverse("api:fetch_export", args=[row.pk])
    return shown


@router.get("/exports", response=ListPage[ExportOut], summary="List your exports")
def list_exports(request: HttpRequest, paging: Query[Paging]) -> ListPage[ExportOut]:
    """Newest first."""
    user = authorize(request)
    return page(request, list_own_exports(user), ["-pk"], paging, _export_out)


@router.post("/exports", response={202: ExportOut}, summary="Start an export")
def create_export(request: HttpRequest, asked: ExportIn, response: HttpResponse) -> Status[dict[str, Any]]:
    """The export is written in the background. Read it until `file` is set."""
    user = authorize(request, Role.VIEWER, TokenScope.WRITE)

    def make() -> tuple[ExportOut, str]:
        row = actions.make_export(Actor.behind(request, user), asked.what, asked.format, asked.query)
        return _export_out(row), reverse("api:read_export", args=[row.pk])

    return Status(202, answer_once(request, response, user, make))


@router.get("/exports/{pk}", response=ExportOut, summary="Read an export")
def read_export(request: HttpRequest, pk: Id) -> ExportOut:
    user = authorize(request)
    return _export_out(find(list_own_exports(user), pk=pk))


FILE = binary("application/octet-stream")


@router.get("/exports/{pk}/file", response=None, openapi_extra=FILE, summary="Fetch the file of an export")
def fetch_export(request: HttpRequest, pk: Id) -> HttpResponseBase:
    """Files are kept for one week."""
    row = find(list_own_exports(authorize(request)), pk=pk)
    try:
        return send_file(request, row)
    except Http404 as error:
        raise Refusal("missing", str(error)) from None


@router.delete("/exports/{pk}", response={204: None}, summary="Remove an export")
def delete_export(request: HttpRequest, pk: Id) -> Status[None]:
    """A running export is stopped first."""
    user = authorize(request, Role.VIEWER, TokenScope.WRITE)
    actions.discard_export(Actor.behind(request, user), find(list_own_exports(user), pk=pk))
    return Status(204, None)


# --- imports ---

Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=4_000, pattern=NO_NUL)]


class About(Schema):
    """What the file is, and the fields that it does not contain."""

    kind: Literal["bundle", "history", "labels"]
    model: Text = Field("", description="for a history or labels")
    layer: Text = Field("", description="for a history, and for labels whose file names no layer")
    unit: Text = Field(
        "", description="for a history; layer and unit may be in the file's name instead: layer4_122.json"
    )
    question: Text = Field("", description="for a history; optional")
    backbone_model: Text = Field("", description="for a history: the model that wrote its replies; optional")
    source: Text = Field("", description="for labels: the method that made them")
    units_from: Literal["", "0", "1"] = Field(
        "", description="for labels: the number of a layer's first unit, 0 by default"
    )
    owner: Text = Field("", description="owner of the runs, chosen by an admin; by default the importing person")


class ImportOut(RowOut):
    """An imported file."""

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
        validation_alias="imported_runs", description="runs imported so far"
    )


class LeftOut(Schema):
    """A file of a batch that was refused."""

    name: str
    problem: str


class BatchOut(Schema):
    """The imports that were started, in the order of the files, and the files that were refused."""

    imports: list[ImportOut]
    left_out: list[LeftOut]


ROWS = Import.objects.select_related("job__asked_by").prefetch_related("imported_runs")


@router.get("/imports", response=ListPage[ImportOut], summary="List imports", tags=IMPORTS)
def list_imports(request: HttpRequest, paging: Query[Paging]) -> ListPage[ImportOut]:
    """The whole team's imports, newest first."""
    authorize(request)
    return page(request, ROWS.all(), ["-pk"], paging, ImportOut.from_orm)


@router.post("/imports", response={202: ImportOut}, summary="Start an import", tags=IMPORTS)
def create_import(
    request: HttpRequest, about: Form[About], file: File[UploadedFile], response: HttpResponse
) -> Status[ImportOut]:
    """Sent as multipart/form-data. Runs that already exist are recognized, so repeating an import is harmless."""
    user = authorize(request, Role.RESEARCHER, TokenScope.WRITE)
    # With a single file a refusal raises, so there is exactly one import
    (row,), _ = bring_files(request, user, about, [file])
    response["Location"] = reverse("api:read_import", args=[row.pk])
    return Status(202, ImportOut.from_orm(find(ROWS.all(), pk=row.pk)))


@router.post("/imports/batch", response={202: BatchOut}, summary="Start several imports", tags=IMPORTS)
def create_imports(request: HttpRequest, about: Form[About], file: File[list[UploadedFile]]) -> Status[BatchOut]:
    """As for one import, with the field `file` repeated. Each file becomes its own import; the other fields apply to
    all. Files that are refused are listed and do not block the others. If every file is refused, nothing starts."""
    user = authorize(request, Role.RESEARCHER, TokenScope.WRITE)
    taken, refused = bring_files(request, user, about, file)
    rows = ROWS.filter(pk__in=[row.pk for row in taken]).order_by("pk")
    left = [LeftOut(name=name, problem=reason) for name, reason in refused]
    return Status(202, BatchOut(imports=[ImportOut.from_orm(row) for row in rows], left_out=left))


@router.get("/imports/{pk}", response=ImportOut, summary="Read an import", tags=IMPORTS)
def read_import(request: HttpRequest, pk: Id) -> ImportOut:
    authorize(request)
    return ImportOut.from_orm(find(ROWS.all(), pk=pk))


def bring_files(
    request: HttpRequest, user: User, about: About, files: list[UploadedFile]
) -> tuple[list[Import], list[tuple[str, str]]]:
    return actions.bring_files(Actor.behind(request, user), about.kind, about.dict(), files)
