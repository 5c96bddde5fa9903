"""Long work of the settings pages: models and datasets of one's own, indexes; how far it is, stopping, going on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Field, Query, Router, Schema, Status
from pydantic import StringConstraints

from experiments.api.cursors import Page, Paging, page
from experiments.api.entry import allow
from experiments.api.fields import NO_NUL, Body, Id, Name, find
from experiments.api.once import once
from experiments.api.problems import Refusal
from experiments.core import notify
from experiments.installation import catalogue_api, dataset_pages
from experiments.installation import job_pages as asking
from experiments.models import Job
from experiments.models.api_token import Scope
from experiments.models.job import JobKind, JobStatus
from experiments.models.member import Role

router = Router(tags=["Work"])

Place = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=480, pattern=NO_NUL)]
Label = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200, pattern=NO_NUL)]


class ModelIn(Body):
    """A model to be looked at."""

    name: Annotated[Place, Field(max_length=200, description="hub id or folder", examples=["hf:microsoft/resnet-50"])]


class DatasetIn(Body):
    """A folder of images to be looked at."""

    place: Place = Field(description="a folder on the worker's machine", examples=["/data/photographs"])
    label: Label = ""


class IndexIn(Body):
    """Layers whose units are all to be measured."""

    dataset: Place
    model: Name
    layers: list[Name] = Field(min_length=1, max_length=500)
    insist: bool = Field(False, description="take published exemplars of other weights too; they are marked")


class Progress(Schema):
    what: str
    done: int
    total: int


class JobOut(Schema):
    """Work that somebody asked of a worker."""

    id: int
    kind: str
    subject: str
    options: dict[str, Any]
    asked_by: str | None
    created: datetime
    status: str
    result: str
    stopping: bool
    progress: Progress | None


JOBS = Job.objects.select_related("asked_by")


def job_out(row: Job) -> JobOut:
    told = notify.reported(row.topic) if row.status == JobStatus.RUNNING else None
    names = ("id", "kind", "subject", "options", "created", "status", "result")
    return JobOut(
        asked_by=row.asked_by.get_username() if row.asked_by else None,
        stopping=row.stop_requested and row.is_moving,
        progress=Progress(**told) if told else None,
        **{name: getattr(row, name) for name in names},
    )


def read(pk: int) -> JobOut:
    return job_out(find(JOBS.all(), pk=pk))


def asked(job: Job) -> tuple[JobOut, str]:
    return read(job.pk), reverse("api:read_job", args=[job.pk])


@router.get("/jobs", response=Page[JobOut], summary="List work")
def list_jobs(request: HttpRequest, paging: Query[Paging]) -> Page[JobOut]:
    """The newest first."""
    allow(request)
    return page(request, JOBS.all(), ["-pk"], paging, job_out)


@router.get("/jobs/{pk}", response=JobOut, summary="Read how far work is")
def read_job(request: HttpRequest, pk: Id) -> JobOut:
    allow(request)
    return read(pk)


@catalogue_api.router.post("/models", response={202: JobOut}, summary="Add a model")
def add_model(request: HttpRequest, model: ModelIn, response: HttpResponse) -> Status[dict[str, Any]]:
    """Have a worker load it once, to list its layers."""
    user = allow(request, Role.ADMIN, Scope.WRITE)
    return Status(202, once(request, response, user, lambda: asked(asking.ask(request, JobKind.MODEL, model.name))))


@catalogue_api.router.post("/datasets", response={202: JobOut}, summary="Add a dataset")
def add_dataset(request: HttpRequest, given: DatasetIn, response: HttpResponse) -> Status[dict[str, Any]]:
    """Have a worker look at a folder on its disks."""
    user = allow(request, Role.ADMIN, Scope.WRITE)

    def make() -> tuple[JobOut, str]:
        return asked(asking.ask(request, JobKind.DATASET, given.place, label=given.label))

    return Status(202, once(request, response, user, make))


@router.post("/indexes", response={202: JobOut}, summary="Index a dataset for a model")
def add_index(request: HttpRequest, index: IndexIn, response: HttpResponse) -> Status[dict[str, Any]]:
    """Have a worker measure all units of some layers over a dataset."""
    user = allow(request, Role.RESEARCHER, Scope.WRITE)
    if problem := dataset_pages.index_problem(index.dataset, index.model, index.layers):
        raise Refusal("invalid", problem)

    def make() -> tuple[JobOut, str]:
        insist = {"insist": True} if index.insist else {}
        options = {"model": index.model, "layers": index.layers} | insist
        return asked(asking.ask(request, JobKind.INDEX, index.dataset, **options))

    return Status(202, once(request, response, user, make))


@router.post("/jobs/{pk}/stop", response=JobOut, summary="Stop work")
def stop_job(request: HttpRequest, pk: Id) -> JobOut:
    """What was done is kept. Work that has ended stays as it is."""
    allow(request, Role.VIEWER, Scope.WRITE)
    find(Job.objects.all(), pk=pk)
    asking.stop(request, pk)
    return read(pk)


@router.post("/jobs/{pk}/go-on", response=JobOut, summary="Have stopped work done after all")
def go_on_with_job(request: HttpRequest, pk: Id) -> JobOut:
    """Work that was stopped, or failed."""
    allow(request, Role.VIEWER, Scope.WRITE)
    asking.allowed(request, find(Job.objects.all(), pk=pk).pk)
    must_be(find(Job.objects.all(), pk=pk), [JobStatus.STOPPED, JobStatus.FAILED])
    asking.go_on(request, pk)
    return read(pk)


def must_be(job: Job, statuses: Sequence[JobStatus]) -> None:
    if job.status not in statuses:
        allowed = " or ".join(status.label.lower() for status in statuses)
        raise Refusal("conflict", f"Job {job.pk} is {job.status}: it would have to be {allowed}.")
