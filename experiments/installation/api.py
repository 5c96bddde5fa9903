"""API of the installation: models, layers, datasets, backbones, toolsets, jobs and workers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from django.db.models import Count, Sum
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Field, Query, Router, Schema, Status
from pydantic import StringConstraints

from experiments.api.auth import authorize
from experiments.api.cursors import ListPage, Paging, page
from experiments.api.fields import NO_NUL, Body, Id, Name, Progress, RowOut, UserName, Words, find
from experiments.api.idempotency import answer_once
from experiments.core import notify, worker_status
from experiments.core.actors import Actor
from experiments.core.system_names import SystemNameMasker
from experiments.installation import actions, queue_status
from experiments.models import Backbone, Dataset, Job, Layer, Role, TokenScope, Toolset, VisionModelRow

router = Router(tags=["What there is"])


class PartOut(Schema):
    """A part that workers use, and what is missing if it is not available."""

    key: str
    label: str
    available: bool
    remedy: str
    model_names: list[str]


class ModelOut(Schema):
    """A trained network."""

    id: int
    name: str
    label: str
    available: bool
    remedy: str
    revision: str
    added: datetime | None


class ModelDetail(ModelOut):
    """A model with the number of its layers and units that workers have found."""

    layers: int
    units: int


class ModelFilters(Schema):
    name: Words | None = None
    available: bool | None = None


class LayerOut(RowOut):
    """A named layer of a model."""

    id: int
    model: str = Field(validation_alias="model.name")
    position: int
    name: str
    path: str
    kind: str
    units: int
    scale: str = Field(description="How logits become probabilities: softmax or sigmoid; empty for other layers.")


class DatasetOut(Schema):
    """Images that exemplars come from."""

    id: int
    key: str
    label: str
    available: bool
    remedy: str
    revision: str
    images: int
    broken_count: int
    indexed_layers: int
    added: datetime | None


@router.get("/models", response=ListPage[ModelOut], summary="List models")
def list_models(request: HttpRequest, filters: Query[ModelFilters], paging: Query[Paging]) -> ListPage[ModelOut]:
    """Lists built-in models and those that users added, by name."""
    authorize(request)
    rows = VisionModelRow.objects.filter(**filters.model_dump(exclude_none=True))
    return page(request, rows, ["name"], paging, ModelOut.from_orm)


@router.get("/models/{pk}", response=ModelDetail, summary="Read a model")
def read_model(request: HttpRequest, pk: Id) -> ModelDetail:
    authorize(request)
    row = find(VisionModelRow.objects.all(), pk=pk)
    found = Layer.objects.filter(model=row).aggregate(layers=Count("pk"), units=Sum("units", default=0))
    return ModelDetail(**ModelOut.from_orm(row).model_dump(), **found)


@router.delete("/models/{pk}", response={204: None}, summary="Remove a model")
def delete_model(request: HttpRequest, pk: Id) -> Status[None]:
    """Removes a model that a user added; its runs stay."""
    actor = Actor.behind(request, authorize(request, Role.ADMIN, TokenScope.WRITE))
    actions.remove(actor, find(VisionModelRow.objects.all(), pk=pk))
    return Status(204, None)


@router.get("/models/{pk}/layers", response=ListPage[LayerOut], summary="List the layers of a model")
def list_layers(request: HttpRequest, pk: Id, paging: Query[Paging]) -> ListPage[LayerOut]:
    """In the order of the network."""
    authorize(request)
    model = find(VisionModelRow.objects.all(), pk=pk)
    rows = Layer.objects.filter(model=model).select_related("model").defer("names")
    return page(request, rows, ["position", "pk"], paging, LayerOut.from_orm)


@router.get("/layers/{pk}", response=LayerOut, summary="Read a layer")
def read_layer(request: HttpRequest, pk: Id) -> LayerOut:
    authorize(request)
    return LayerOut.from_orm(find(Layer.objects.select_related("model").defer("names"), pk=pk))


@router.get("/datasets", response=ListPage[DatasetOut], summary="List datasets")
def list_datasets(request: HttpRequest, paging: Query[Paging]) -> ListPage[DatasetOut]:
    authorize(request)
    return page(request, Dataset.objects.annotate(indexed_layers=Count("indexes")), ["pk"], paging, DatasetOut.from_orm)


@router.delete("/datasets/{pk}", response={204: None}, summary="Remove a dataset")
def delete_dataset(request: HttpRequest, pk: Id) -> Status[None]:
    """Removes a dataset that a user added; its images stay."""
    actor = Actor.behind(request, authorize(request, Role.ADMIN, TokenScope.WRITE))
    actions.remove(actor, find(Dataset.objects.all(), pk=pk))
    return Status(204, None)


@router.get("/backbones", response=ListPage[PartOut], summary="List backbones")
def list_backbones(request: HttpRequest, paging: Query[Paging]) -> ListPage[PartOut]:
    """Lists the language models and other backbones that write the agent's replies."""
    authorize(request)
    return page(request, Backbone.objects.all(), ["pk"], paging, PartOut.from_orm)


@router.get("/toolsets", response=ListPage[PartOut], summary="List toolsets")
def list_toolsets(request: HttpRequest, paging: Query[Paging]) -> ListPage[PartOut]:
    """A toolset is a generator, an editor and a describer that go together."""
    authorize(request)
    return page(request, Toolset.objects.all(), ["pk"], paging, PartOut.from_orm)


# --- work ---

Path = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=480, pattern=NO_NUL)]
Label = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200, pattern=NO_NUL)]
WORK = ["Work"]


class ModelIn(Body):
    """A model to inspect."""

    name: Annotated[Path, Field(max_length=200, description="hub id or folder", examples=["hf:microsoft/resnet-50"])]


class DatasetIn(Body):
    """A folder of images to inspect."""

    place: Path = Field(description="a folder on the worker's machine", examples=["/data/photographs"])
    label: Label = ""
    follow_links: bool = Field(False, description="read what links in a folder lead to outside it, too")


class IndexIn(Body):
    """Layers whose units are all measured."""

    dataset: Path
    model: Name
    layers: list[Name] = Field(min_length=1, max_length=500)
    insist: bool = Field(False, description="take published exemplars of other weights too; they are marked")


class JobOut(RowOut):
    """A job that a user asked a worker to do."""

    id: int
    kind: str
    subject: str
    options: dict[str, Any]
    asked_by: UserName | None
    created: datetime
    status: str
    result: str
    stopping: bool = Field(validation_alias="is_stopping")
    progress: Progress | None = None


def _job_out(row: Job) -> JobOut:
    shown, progress = JobOut.from_orm(row), notify.read_progress(row)
    shown.progress = Progress(**progress) if progress else None
    return shown


JOBS = Job.objects.select_related("asked_by")


@router.get("/jobs", response=ListPage[JobOut], summary="List jobs", tags=WORK)
def list_jobs(request: HttpRequest, paging: Query[Paging]) -> ListPage[JobOut]:
    """Newest first."""
    authorize(request)
    return page(request, JOBS.all(), ["-pk"], paging, _job_out)


@router.get("/jobs/{pk}", response=JobOut, summary="Read a job", tags=WORK)
def read_job(request: HttpRequest, pk: Id) -> JobOut:
    authorize(request)
    return _job_out(find(JOBS.all(), pk=pk))


def ask_once(request: HttpRequest, response: HttpResponse, actor: Actor, ask: Callable[[], Job]) -> Status[Any]:
    """Create the job once, even if the same request is sent again."""

    def make() -> tuple[JobOut, str]:
        job = ask()
        return _job_out(job), reverse("api:read_job", args=[job.pk])

    return Status(202, answer_once(request, response, actor.person, make))


@router.post("/models", response={202: JobOut}, summary="Add a model")
def add_model(request: HttpRequest, model: ModelIn, response: HttpResponse) -> Status[Any]:
    """A worker loads the model once to list its layers."""
    actor = Actor.behind(request, authorize(request, Role.ADMIN, TokenScope.WRITE))
    return ask_once(request, response, actor, lambda: actions.add_model(actor, model.name))


@router.post("/datasets", response={202: JobOut}, summary="Add a dataset")
def add_dataset(request: HttpRequest, given: DatasetIn, response: HttpResponse) -> Status[Any]:
    """A worker inspects a folder on its disks."""
    actor = Actor.behind(request, authorize(request, Role.ADMIN, TokenScope.WRITE))
    asked = partial(actions.add_dataset, actor, given.place, given.label, follow_links=given.follow_links)
    return ask_once(request, response, actor, asked)


@router.post("/indexes", response={202: JobOut}, summary="Index a dataset for a model", tags=WORK)
def add_index(request: HttpRequest, index: IndexIn, response: HttpResponse) -> Status[Any]:
    """A worker measures all units of some layers over a dataset."""
    actor = Actor.behind(request, authorize(request, Role.RESEARCHER, TokenScope.WRITE))
    asked = partial(actions.add_index, actor, index.dataset, index.model, index.layers, insist=index.insist)
    return ask_once(request, response, actor, asked)


@router.post("/catalogue/refresh", response={202: None}, summary="Refresh the catalogue", tags=WORK)
def refresh_catalogue(request: HttpRequest) -> Status[None]:
    """A worker checks every plug-in, model and dataset, for example after weights were downloaded."""
    actions.refresh_catalogue(Actor.behind(request, authorize(request, Role.RESEARCHER, TokenScope.WRITE)))
    return Status(202, None)


@router.post("/jobs/{pk}/stop", response=JobOut, summary="Stop a job", tags=WORK)
def stop_job(request: HttpRequest, pk: Id) -> JobOut:
    """Finished work is kept. A job that has ended is left unchanged."""
    actor = Actor.behind(request, authorize(request, Role.VIEWER, TokenScope.WRITE))
    actions.stop_job(actor, find(JOBS.all(), pk=pk))
    return _job_out(find(JOBS.all(), pk=pk))


@router.post("/jobs/{pk}/resume", response=JobOut, summary="Resume a job", tags=WORK)
def resume_job(request: HttpRequest, pk: Id) -> JobOut:
    """Resumes a stopped or failed job."""
    actor = Actor.behind(request, authorize(request, Role.VIEWER, TokenScope.WRITE))
    actions.resume_job(actor, find(JOBS.all(), pk=pk))
    return _job_out(find(JOBS.all(), pk=pk))


# --- workers ---


class LoadedModel(Schema):
    """Weights that a worker holds in memory."""

    name: str
    bytes: int
    busy: bool


class WorkerJob(Schema):
    """What a worker is doing now."""

    words: str
    subject: str
    progress: str
    seconds: float


class WorkerPlugin(Schema):
    """A file or package that adds parts."""

    path: str
    version: str = Field(description="the first 12 characters of a file's SHA-256, or a package's version")
    adds: list[str] = Field(description="such as: vision model our-net")


class WorkerOut(Schema):
    """A worker as it last reported."""

    name: str
    state: str = Field(
        description="ready, busy, refuses (its code does not match the database's version, so it claims no runs) "
        "or late (no heartbeat for a while)"
    )
    device: str
    precision: str
    threads: int
    silent: float = Field(description="seconds since its last report")
    up: float = Field(description="seconds since its start")
    refuses: str = Field(description="why it claims no runs, with the remedy; empty if it does")
    problems: list[str] = Field(
        description="plug-ins and files of toys that it left out, each with the reason and the remedy"
    )
    plugins: list[WorkerPlugin] = Field(description="plug-ins that it loaded")
    budget: int = Field(description="bytes of weights that it may hold; 0 for no limit")
    loaded: list[LoadedModel]
    doing: list[WorkerJob]


class Workers(Schema):
    """All workers that reported in the last two minutes."""

    items: list[WorkerOut]
    reachable: bool = Field(description="false: Redis does not answer, so nothing is known of workers")


@router.get("/workers", response=Workers, summary="List workers", tags=WORK)
def list_workers(request: HttpRequest) -> Workers:
    """What each worker holds in memory and does."""
    authorize(request)
    reports = worker_status.alive_workers()
    found = [worker_status.describe_worker(each) for each in reports or ()]
    return Workers(items=[WorkerOut(loaded=each["places"], **each) for each in found], reachable=reports is not None)


class WaitingOut(Schema):
    """The active runs of one person or one sweep, in the order in which workers take them."""

    owner: str = Field(description="whose runs, or whose sweep: a user name")
    sweep: int | None
    title: str = Field(description="the person, or the sweep's name")
    queued: int = Field(description="runs that have not begun")
    under_way: int = Field(description="runs that have")
    held: int = Field(description="of those, runs in which a worker executes a round now")
    since: datetime | None = Field(description="when the one that has waited longest was asked")
    models: dict[str, int] = Field(description="model -> active runs that need it")
    weight: float
    share: float | None = Field(description="its part of the work of people, or of sweeps; null while it is closed")
    open: bool = Field(description="whether its runs may be claimed")
    reason: str = Field(description="why not")


class WaitingList(Schema):
    """The queue, in order of turn."""

    items: list[WaitingOut]
    in_terminals: int = Field(description="active runs that a command in a terminal executes, without a worker")


@router.get("/workers/queue", response=WaitingList, summary="Read the queue of runs", tags=WORK)
def list_waiting(request: HttpRequest) -> WaitingList:
    """Runs of people come before those of sweeps. Within each kind, work is shared by weight."""
    found = queue_status.read_waiting(SystemNameMasker(authorize(request)))
    items = [_waiting_out(each) for each in found.lines]
    return WaitingList(items=items, in_terminals=found.in_terminals)


def _waiting_out(line: queue_status.WaitingLine) -> WaitingOut:
    same = ("title", "queued", "under_way", "held", "since", "models", "share")
    run_queue = line.run_queue
    return WaitingOut(
        owner=run_queue.owner.get_username(),
        sweep=run_queue.sweep_id,
        weight=run_queue.weight,
        open=run_queue.enabled,
        reason=line.reason or line.closed,
        **{name: getattr(line, name) for name in same},
    )
