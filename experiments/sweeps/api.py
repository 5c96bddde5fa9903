"""API of sweeps: forecast, start, pause, resume, stop, retry; progress and findings."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from ninja import Field, Query, Router, Schema, Status

from experiments.api.auth import authorize
from experiments.api.cursors import ListPage, Paging, page
from experiments.api.fields import (
    NO_NUL,
    Amount,
    Body,
    FullName,
    Id,
    JobProgress,
    RowOut,
    RunLimitsIn,
    Whole,
    Words,
    find,
)
from experiments.api.filters import read_filters, with_filters
from experiments.api.idempotency import answer_once
from experiments.core.actors import Actor
from experiments.core.errors import InvalidFields
from experiments.core.sweep_totals import MAX_TOKENS
from experiments.core.system_names import SystemNameMasker
from experiments.models import Sweep, TokenScope
from experiments.runs.prediction_interval import PredictionInterval
from experiments.sweeps import actions, lists
from experiments.sweeps.fields import PRIORITIES
from experiments.sweeps.forecast import SweepForecast, predict, predict_rest
from experiments.sweeps.form import NewSweep
from experiments.sweeps.unit_list import MAX_SENT
from workers.record import tasks
from workers.record.limits import MAX_EXEMPLARS, MAX_REFLECTIONS, QUESTION_CHARS

router = Router(tags=["Sweeps"])
Priority = Literal["low", "normal", "high"]
Choose = Literal["layers", "filter", "sample", "unlabelled", "list"]
Budget = Annotated[float, Field(gt=0, allow_inf_nan=False)]
MAX_GROUPS = 200


class SweepBudgetIn(Body):
    """What the whole may take; null for no limit."""

    cost: Annotated[float, Field(allow_inf_nan=False, description="US dollars")] | None = None
    tokens: Amount | None = None
    seconds: Annotated[float, Field(allow_inf_nan=False, description="of work, all runs together")] | None = None


class SweepIn(Body):
    """One question of many units. What is left out has a value that suits the model."""

    model: str = Field(min_length=1, max_length=200, pattern=NO_NUL, examples=["toybox"])
    layers: list[Words] = Field([], max_length=1_000, examples=[["layer4"]])
    choose: Choose = Field("layers", description="all units of the layers, or which of them")
    state: Words = Field("", description="filter: a state of the unit map, as new or dead, or a band, as band-low")
    words: Words = Field("", description="filter: words of labels or names")
    sample: Annotated[int, Field(ge=1, le=10**9)] | None = Field(None, description="sample: how many")
    below: Annotated[float, Field(ge=-1, le=1)] | None = Field(None, description="unlabelled: a good label reaches it")
    units: str = Field(
        "", max_length=MAX_SENT, pattern=NO_NUL, description="list: CSV of model, layer, unit; a unit may be 8-12"
    )
    name: str = Field("", max_length=120, pattern=NO_NUL)
    question: str = Field(
        "", max_length=QUESTION_CHARS, pattern=NO_NUL, description="with {unit}, {name}, {layer}, {model}; or empty"
    )
    task: str = Field(tasks.DEFAULT_TASK, json_schema_extra={"enum": list(tasks.TASKS)})
    agents: list[Words] = Field(min_length=1, max_length=20, examples=[["scripted"], ["openai:gpt-4o"]])
    toolsets: list[Words] = Field([], max_length=20)
    dataset: Words = ""
    surroundings: Literal["", "dim", "dark", "weighted"] = ""
    exemplars: int = Field(0, ge=0, le=MAX_EXEMPLARS, description="that a run works with; 0 for all that there are")
    reflections: int = Field(0, ge=0, le=MAX_REFLECTIONS)
    ablation: bool = Field(False, description="whether programs may ablate the unit in its model")
    label_check: bool | None = Field(None, description="whether conclusions are checked; null as installed")
    limits: RunLimitsIn = Field(RunLimitsIn(), description="of each run")
    budget: SweepBudgetIn = Field(SweepBudgetIn(), description="of the whole")
    priority: Priority = "normal"
    seed: Whole = 0
    unpriced: bool = Field(False, description="though no price of a backbone is known")


class SweepChangesIn(Body):
    """What is left out stays as it is."""

    priority: Priority | None = None
    cost: Budget | None = None
    tokens: Annotated[int, Field(gt=0, le=MAX_TOKENS)] | None = None
    seconds: Budget | None = None


class RetryIn(Body):
    what: Literal["failed", "stopped"] = "failed"


class PredictionIntervalOut(RowOut):
    """The likeliest sum, and what nine of ten are at least and at most."""

    lower: float
    expected: float
    upper: float


class SweepForecastOut(RowOut):
    """Forecast from recorded runs; null for a backbone without recorded runs."""

    units: int
    runs: int
    seconds: PredictionIntervalOut | None = Field(description="of work, all runs together")
    clock: PredictionIntervalOut | None = Field(description="seconds by the clock with the workers of this moment")
    cost: PredictionIntervalOut | None
    tokens: PredictionIntervalOut | None
    recorded: int
    unknown: list[str]


class SweepOut(RowOut):
    """A sweep, how far it is, what it took."""

    id: int
    name: str
    url: str = Field(validation_alias="get_absolute_url")
    owner: FullName
    evaluation: int | None = Field(None, validation_alias="evaluation_id", description="that asks by it and steers it")
    created: datetime
    ended: datetime | None
    question: str
    task: str
    model: str = Field("", validation_alias="selection.model")
    variants: list[dict[str, str]]
    selection: dict[str, Any]
    limits: dict[str, Any]
    status: str
    reason: str
    priority: str = Field(validation_alias="get_priority_display")
    planned: int
    created_runs: int
    done_runs: int
    failed_runs: int
    stopped_runs: int
    active_runs: int
    suspended_runs: int
    checked_runs: int
    unchecked_runs: int
    left: int = Field(description="runs that have not ended")
    cost_limit: float | None
    token_limit: int | None
    seconds_limit: float | None
    cost: float
    tokens: int
    seconds: float
    progress: JobProgress = Field(None, validation_alias="job")


class FailureOut(RowOut):
    reason: str
    count: int
    runs: list[int]


class GroupOut(RowOut):
    """Labels that are alike, with the runs that gave them."""

    label: str
    labels: list[str]
    runs: list[int]


class SweepFoundOut(Schema):
    """What a sweep has found so far. Its runs are listed by `GET /runs?sweep=`."""

    sweep: SweepOut
    left: SweepForecastOut = Field(description="what the rest will take")
    failures: list[FailureOut]
    groups: list[GroupOut] = Field(description="the largest first")
    tested: int = Field(description="runs whose label's r was tested against 0")
    beyond_chance: int = Field(
        description="of these, those with r above 0 beyond chance: adjusted p of 0.05 at most (Benjamini and Hochberg)"
    )


def _find(pk: int) -> Any:
    return find(lists.with_progress(Sweep.objects.all()), pk=pk)


def _shape(row: Any) -> SweepOut:
    """Convert a row of `with_progress`."""
    row.left = lists.count_left(row)
    return SweepOut.from_orm(row)


def _shape_forecast(found: SweepForecast) -> SweepForecastOut:
    def spread(each: PredictionInterval | None) -> PredictionIntervalOut | None:
        return PredictionIntervalOut(lower=each.lower, expected=each.expected, upper=each.upper) if each else None

    sums = {name: spread(getattr(found, name)) for name in ("seconds", "clock", "cost", "tokens")}
    return SweepForecastOut(
        units=found.units, runs=found.runs, recorded=found.recorded, unknown=list(found.unknown), **sums
    )


def _fill_form(wanted: SweepIn, names: SystemNameMasker) -> NewSweep:
    """Fill in the form of the page, so that both accept the same."""
    typed = QueryDict(mutable=True)
    own = {"layers", "agents", "toolsets", "limits", "budget", "label_check", "unpriced"}
    given = wanted.model_dump(exclude=own, exclude_none=True)
    given |= {name: value for name, value in wanted.limits.model_dump().items() if value is not None}
    given |= {f"budget_{name}": value for name, value in wanted.budget.model_dump(exclude_none=True).items()}
    typed.update({name: str(value) for name, value in given.items()})
    for name, values in (("layer", wanted.layers), ("agent", wanted.agents), ("toolset", wanted.toolsets)):
        typed.setlist(name, values)
    # A box has two states, and this has three.
    typed["label_check"] = {None: "", True: "yes", False: "no"}[wanted.label_check]
    if wanted.unpriced:
        typed["unpriced"] = "on"
    return NewSweep(typed, names)


@with_filters(lists.FILTERS)
class SweepFilters(Schema):
    """The filters of the page Sweeps."""


@router.get("/sweeps", response=ListPage[SweepOut], summary="List sweeps")
def list_sweeps(request: HttpRequest, filters: Query[SweepFilters], paging: Query[Paging]) -> Any:
    """The newest first."""
    authorize(request)
    rows = lists.sweeps_from(read_filters(filters)).require_sense()
    return page(request, rows, ["-pk"], paging, _shape)


@router.post("/sweeps/forecast", response=SweepForecastOut, summary="Forecast a sweep")
def forecast_sweep(request: HttpRequest, wanted: SweepIn) -> SweepForecastOut:
    """How many units and runs, and what they will take. Nothing is started."""
    user = authorize(request, actions.STARTS, TokenScope.RUN)
    form = _fill_form(wanted, SystemNameMasker(user))
    if not form.is_valid():
        wrong = {name: [str(each) for each in found] for name, found in form.errors.items()}
        raise InvalidFields("Nothing can be forecast: some of it needs another look.", wrong)
    return _shape_forecast(predict(form.draft()))


@router.post("/sweeps", response={201: SweepOut}, summary="Start a sweep")
def start_sweep(request: HttpRequest, wanted: SweepIn, response: HttpResponse) -> Status[object]:
    """Takes a researcher. Sent again with the same Idempotency-Key, it starts no other."""
    by = Actor.behind(request, authorize(request, actions.STARTS, TokenScope.RUN))

    def make() -> tuple[SweepOut, str]:
        row = actions.start(by, _fill_form(wanted, SystemNameMasker(by.person)))
        return _shape(_find(row.pk)), reverse("api:read_sweep", args=[row.pk])

    return Status(201, answer_once(request, response, by.person, make))


@router.get("/sweeps/{pk}", response=SweepFoundOut, summary="Read a sweep")
def read_sweep(request: HttpRequest, pk: Id) -> SweepFoundOut:
    """How far it is, what the rest will take, why runs failed, labels by likeness."""
    user = authorize(request)
    row = _find(pk)
    runs = lists.read_runs(row, SystemNameMasker(user))
    groups = lists.group_runs(runs)[:MAX_GROUPS]
    return SweepFoundOut(
        sweep=_shape(row),
        left=_shape_forecast(predict_rest(row, lists.count_left(row))),
        failures=[
            FailureOut(reason=each.reason, count=each.count, runs=list(each.runs)) for each in lists.list_failures(row)
        ],
        groups=[GroupOut(label=each.label, labels=list(each.labels), runs=list(each.members)) for each in groups],
        tested=sum(run.q is not None for run in runs),
        beyond_chance=sum(run.beyond_chance for run in runs),
    )


@router.post("/sweeps/{pk}/pause", response=SweepOut, summary="Pause a sweep")
def pause_sweep(request: HttpRequest, pk: Id) -> SweepOut:
    """Rounds under way end; no further one begins."""
    user = authorize(request, actions.STARTS, TokenScope.RUN)
    actions.pause(Actor.behind(request, user), _find(pk).pk)
    return _shape(_find(pk))


@router.post("/sweeps/{pk}/resume", response=SweepOut, summary="Resume a sweep")
def resume_sweep(request: HttpRequest, pk: Id) -> SweepOut:
    """A budget that is used up has to be raised first."""
    user = authorize(request, actions.STARTS, TokenScope.RUN)
    actions.resume(Actor.behind(request, user), _find(pk).pk)
    return _shape(_find(pk))


@router.post("/sweeps/{pk}/stop", response=SweepOut, summary="Stop a sweep")
def stop_sweep(request: HttpRequest, pk: Id) -> SweepOut:
    """Runs that have not ended are stopped; what is concluded stays."""
    user = authorize(request, actions.STARTS, TokenScope.RUN)
    actions.stop(Actor.behind(request, user), _find(pk).pk)
    return _shape(_find(pk))


@router.post("/sweeps/{pk}/retry", response=SweepOut, summary="Retry runs of a sweep")
def retry_sweep(request: HttpRequest, pk: Id, wanted: RetryIn) -> SweepOut:
    """Those that failed, or those that were stopped, go on where they were."""
    user = authorize(request, actions.STARTS, TokenScope.RUN)
    actions.retry(Actor.behind(request, user), _find(pk).pk, wanted.what)
    return _shape(_find(pk))


@router.patch("/sweeps/{pk}", response=SweepOut, summary="Change a sweep")
def change_sweep(request: HttpRequest, pk: Id, wanted: SweepChangesIn) -> SweepOut:
    """Its priority or budget; one that is null is no limit."""
    user = authorize(request, actions.STARTS, TokenScope.RUN)
    columns = {"cost": "cost_limit", "tokens": "token_limit", "seconds": "seconds_limit"}
    # A budget that is left out stays; null removes it. Only `exclude_unset` tells the two apart.
    given = wanted.model_dump(exclude_unset=True)
    budget = {columns[name]: value for name, value in given.items() if name in columns}
    actions.change(Actor.behind(request, user), _find(pk).pk, PRIORITIES.get(given.get("priority") or ""), budget)
    return _shape(_find(pk))
