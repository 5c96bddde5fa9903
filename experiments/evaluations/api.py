"""API of evaluations: start, stop, resume, repair, delete, compare; results and items."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from ninja import Field, Query, Router, Schema, Status

from experiments.api.auth import authorize
from experiments.api.cursors import ListPage, Paging, page
from experiments.api.fields import NO_NUL, Body, FullName, Given, Id, JobProgress, RowNumber, RowOut, Whole, Words, find
from experiments.api.filters import read_filters, with_filters
from experiments.api.idempotency import answer_once
from experiments.api.problems import Refusal
from experiments.core.actors import Actor
from experiments.core.system_names import SystemNameMasker
from experiments.evaluations import actions, lists
from experiments.evaluations.autoencoders import MAX_AUTOENCODERS
from experiments.evaluations.comparison import FigurePair, ItemPair, score_of
from experiments.evaluations.comparison import compare as compare_evaluations
from experiments.evaluations.form import MAX_REPEATS, MAX_UNITS, NewEvaluation
from experiments.evaluations.results import read_result
from experiments.label_checks.lists import place_of
from experiments.models import Evaluation, EvaluationItem, EvaluationKind, TokenScope
from experiments.pairwise import sources
from workers.record.decoding import encode
from workers.record.evaluation_kinds import MAX_LATENTS
from workers.record.evaluations import CAVEAT, Figure
from workers.record.limits import MAX_REFLECTIONS

router = Router(tags=["Evaluations"])
Limit = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class EvaluationIn(Body):
    """What to measure. Which fields apply depends on the kind. Omitted fields get defaults that fit it."""

    kind: EvaluationKind = Field(strict=False, examples=["synthetic"])
    name: str = Field("", max_length=120, pattern=NO_NUL)
    sources: list[Words] = Field([], max_length=50, description="sources of labels, such as import:milan or person")
    model: Words = Field("", examples=["toybox"])
    layers: list[Words] = Field([], max_length=100)
    batch: Literal["", "fresh", "paper"] = ""
    images: str = Field("", max_length=480, pattern=NO_NUL, description="for spurious features: toybox, or a dataset")
    units: Annotated[int, Field(ge=1, le=MAX_UNITS)] | None = None
    latents: Annotated[int, Field(ge=0, le=MAX_LATENTS)] | None = Field(
        None, description="for spurious features: latents of an auto-encoder of each classifier, instead of its units"
    )
    dataset: str = Field("", max_length=500, pattern=NO_NUL)
    toolset: Words = ""
    backbone: str = Field("", max_length=300, pattern=NO_NUL, examples=["openai:gpt-4o"])
    repeats: Annotated[int, Field(ge=1, le=MAX_REPEATS)] | None = None
    reflections: Annotated[int, Field(ge=0, le=MAX_REFLECTIONS)] | None = None
    autoencoders: list[Words] = Field(
        [], max_length=MAX_AUTOENCODERS, description="auto-encoders of one layer, such as sae:toybox-layer4-topk-256"
    )
    hints: bool = Field(
        False, description="for functions: also run the agent with some inputs and outputs to start with"
    )
    judge: str = Field(
        "",
        max_length=300,
        pattern=NO_NUL,
        description="a backbone that judges labels in pairs, or chooses by descriptions of words",
    )
    seed: Whole = 0
    cost: Limit | None = Field(None, description="US dollars for the whole")
    seconds: Limit | None = Field(None, description="seconds of work for the whole")
    unpriced: bool = Field(False, description="allow a backbone without a known price")


class BudgetIn(Body):
    """Limits of the whole evaluation that replace the current ones."""

    cost: Limit | None = None
    seconds: Limit | None = None


class RepairIn(Body):
    """New weight of the units judged spurious; 0 removes them."""

    factor: float = Field(0.0, ge=0, lt=1)


class FigureOut(RowOut):
    """A figure with its 95 % interval."""

    key: str
    label: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    goal: float | None
    note: str


class EvaluationOut(RowOut):
    """The state of an evaluation. `unfinished` is true while items are left, whatever its figures say."""

    id: int
    kind: str
    name: str
    owner: FullName
    created: datetime
    backbone: Given
    backbone_model: Given
    seed: int
    options: dict[str, Any]
    cost_limit: float | None
    seconds_limit: float | None
    status: str = Field(validation_alias="state.words")
    unfinished: bool = Field(validation_alias="state.left")
    all_items: int
    done_items: int
    failed_items: int
    lacking_items: int
    open_items: int
    waiting_items: int = Field(description="open items that wait for people")
    cost: float = Field(description="US dollars of its runs and checks, if prices are known")
    seconds: float = Field(validation_alias="work", description="of work, including current runs")
    progress: JobProgress = Field(None, validation_alias="job")
    said: str = Field(description="latest message of a worker")


class EvaluationResultOut(Schema):
    """An evaluation with its results so far. Tables and plots are those of its page."""

    evaluation: EvaluationOut
    figures: list[FigureOut]
    tables: list[dict[str, Any]]
    plots: list[dict[str, Any]]
    notes: list[str]
    caveat: str


class EvaluationItemOut(RowOut):
    """One unit by one source: the run, the label, its check and scores."""

    id: int
    position: int
    group: str
    source: str
    unit: str
    options: dict[str, Any]
    status: str
    reason: str
    run: int | None = Field(validation_alias="run_id")
    label: str
    check: int | None = Field(validation_alias="label_check_id")
    score: float | None
    scores: dict[str, Any]
    evidence: dict[str, list[str]] = Field(description="keys of images by set")
    seconds: float


class FigurePairOut(RowOut):
    """A figure in both evaluations."""

    label: str
    a: FigureOut | None
    b: FigureOut | None
    difference: float | None
    apart: bool = Field(description="true if the intervals do not overlap")


class ItemPairOut(Schema):
    """One unit by one source in both evaluations."""

    name: str
    a: int | None
    b: int | None
    difference: float | None


class EvaluationsComparedOut(Schema):
    """Two evaluations of one kind. Differences are b minus a."""

    a: EvaluationOut
    b: EvaluationOut
    figures: list[FigurePairOut]
    worse: list[ItemPairOut]
    better: int
    same: int
    unfinished: list[ItemPairOut]
    alone: int
    caveat: str


def _find(pk: int) -> Any:
    return find(lists.with_progress(Evaluation.objects.all()), pk=pk)


def _shape(row: Any) -> EvaluationOut:
    """Convert a row of `with_progress`."""
    row.state, row.said = lists.state_of(row), row.job.result if row.job else ""
    return EvaluationOut.from_orm(row)


def _shape_item(names: SystemNameMasker) -> Any:
    """Return a function that converts an item for this viewer. Fields that reveal a hidden system are left out."""

    def shape(item: EvaluationItem) -> EvaluationItemOut:
        place = place_of(item)
        hides = place is not None and names.masks_unit(*place)
        shared = {name: getattr(item, name) for name in ("id", "position", "source", "status", "reason", "label")}
        return EvaluationItemOut(
            **shared,
            group="" if hides or lists.is_being_written(item) else item.group,
            unit=lists.name_item(item, names),
            options=item.options,
            run=item.run_id,
            check=item.label_check_id,
            score=None if hides else score_of(item),
            scores={} if hides else item.scores,
            evidence=item.evidence,
            seconds=item.seconds,
        )

    return shape


# --- evaluations ---


@with_filters(lists.FILTERS)
class EvaluationFilters(Schema):
    """The filters of the page Evaluations."""


@router.get("/evaluations", response=ListPage[EvaluationOut], summary="List evaluations")
def list_evaluations(
    request: HttpRequest, filters: Query[EvaluationFilters], paging: Query[Paging]
) -> ListPage[EvaluationOut]:
    """Newest first, optionally of one kind."""
    authorize(request)
    rows = lists.evaluations_from(read_filters(filters)).require_sense()
    return page(request, rows, ["-pk"], paging, _shape)


@router.post("/evaluations", response={201: EvaluationOut}, summary="Start an evaluation")
def start_evaluation(request: HttpRequest, wanted: EvaluationIn, response: HttpResponse) -> Status[object]:
    """Needs the role researcher. A worker plans its items and does them one by one."""
    by = Actor.behind(request, authorize(request, actions.STARTS, TokenScope.RUN))

    def make() -> tuple[EvaluationOut, str]:
        # The form of the page checks the fields, so both accept the same
        typed = QueryDict(mutable=True)
        given = wanted.model_dump(exclude={"sources", "layers", "autoencoders", "unpriced"}, exclude_none=True)
        typed.update({name: str(value) for name, value in given.items()})
        typed["layer"] = ",".join(wanted.layers)
        typed.setlist("source", wanted.sources)
        typed.setlist("autoencoders", wanted.autoencoders)
        if wanted.unpriced:
            typed["unpriced"] = "on"
        row = actions.start(by, NewEvaluation(typed, sources.list_sources()))
        return _shape(_find(row.pk)), reverse("api:read_evaluation", args=[row.pk])

    return Status(201, answer_once(request, response, by.person, make))


@router.get("/evaluations/compare", response=EvaluationsComparedOut, summary="Compare two evaluations")
def compare_two_evaluations(request: HttpRequest, a: RowNumber, b: RowNumber) -> EvaluationsComparedOut:
    """Both must be of one kind. Returns figures with differences, items that got worse, and items unfinished in
    either."""
    user = authorize(request)
    one, other = _find(a), _find(b)
    if one.kind != other.kind or one.pk == other.pk:
        raise Refusal("invalid", "Choose two different evaluations of the same kind.")
    found = compare_evaluations(one, other, SystemNameMasker(user))
    return EvaluationsComparedOut(
        a=_shape(one),
        b=_shape(other),
        figures=[_shape_figures(each) for each in found.figures],
        worse=[_shape_pair(each) for each in found.worse],
        better=found.better,
        same=found.same,
        unfinished=[_shape_pair(each) for each in found.unfinished],
        alone=found.alone,
        caveat=CAVEAT,
    )


def _shape_figures(pair: FigurePair) -> FigurePairOut:
    a, b = (_shape_figure(each) if each else None for each in (pair.a, pair.b))
    return FigurePairOut(label=pair.label, a=a, b=b, difference=pair.difference, apart=pair.apart)


def _shape_figure(figure: Figure) -> FigureOut:
    return FigureOut(**encode(figure))


def _shape_pair(pair: ItemPair) -> ItemPairOut:
    a, b = (each.pk if each else None for each in (pair.a, pair.b))
    return ItemPairOut(name=pair.name, a=a, b=b, difference=pair.difference)


@router.get("/evaluations/{pk}", response=EvaluationResultOut, summary="Read an evaluation")
def read_evaluation(request: HttpRequest, pk: Id) -> EvaluationResultOut:
    """Its state and its results so far."""
    user = authorize(request)
    row = _find(pk)
    result = read_result(row, lists.list_hidden(row, SystemNameMasker(user)))
    return EvaluationResultOut(
        evaluation=_shape(row),
        figures=[_shape_figure(each) for each in result.figures],
        tables=[encode(each) for each in result.tables],
        plots=[encode(each) for each in result.plots],
        notes=[str(each) for each in result.notes],
        caveat=CAVEAT,
    )


@with_filters(lists.ITEM_FILTERS)
class EvaluationItemFilters(Schema):
    """The filters of an evaluation's items."""


@router.get("/evaluations/{pk}/items", response=ListPage[EvaluationItemOut], summary="List items of an evaluation")
def list_evaluation_items(
    request: HttpRequest, pk: Id, filters: Query[EvaluationItemFilters], paging: Query[Paging]
) -> ListPage[EvaluationItemOut]:
    """In the order of execution. Items of units that people are labelling appear after they have finished."""
    user = authorize(request)
    row = find(Evaluation.objects.all(), pk=pk)
    chosen = read_filters(filters) | {"order": "position"}
    return page(request, lists.list_items(row, chosen), ["position"], paging, _shape_item(SystemNameMasker(user)))


@router.post("/evaluations/{pk}/stop", response=EvaluationOut, summary="Stop an evaluation")
def stop_evaluation(request: HttpRequest, pk: Id) -> EvaluationOut:
    """Stops after the current item. Measurements are kept."""
    user = authorize(request, actions.STARTS, TokenScope.RUN)
    actions.stop(Actor.behind(request, user), _find(pk))
    return _shape(_find(pk))


@router.post("/evaluations/{pk}/resume", response=EvaluationOut, summary="Resume an evaluation")
def resume_evaluation(request: HttpRequest, pk: Id, wanted: BudgetIn) -> EvaluationOut:
    """Continues where it stopped or failed. Nothing is measured twice."""
    user = authorize(request, actions.STARTS, TokenScope.RUN)
    actions.resume(Actor.behind(request, user), _find(pk), wanted.cost, wanted.seconds)
    return _shape(_find(pk))


@router.post("/evaluations/{pk}/score", response=EvaluationOut, summary="Score an evaluation again")
def score_evaluation_again(request: HttpRequest, pk: Id) -> EvaluationOut:
    """Uses recorded data: no run is played and no label requested again. Failed items are tried again."""
    user = authorize(request, actions.STARTS, TokenScope.RUN)
    actions.score_again(Actor.behind(request, user), _find(pk))
    return _shape(_find(pk))


@router.post("/evaluations/{pk}/repair", response=EvaluationOut, summary="Repair a classifier")
def repair_evaluation(request: HttpRequest, pk: Id, wanted: RepairIn) -> EvaluationOut:
    """For evaluations of spurious features. Accuracy by group before and after is added to the tables of its result."""
    user = authorize(request, actions.STARTS, TokenScope.RUN)
    actions.repair(Actor.behind(request, user), _find(pk), wanted.factor)
    return _shape(_find(pk))


@router.post("/evaluations/{pk}/people", response=EvaluationOut, summary="Ask people for labels")
def ask_people_for_labels(request: HttpRequest, pk: Id) -> EvaluationOut:
    """Asks for labels of a quarter of the units: an item and a run each, which any researcher may write. Their
    conclusions are checked when the evaluation resumes; `waiting_items` counts the unfinished ones."""
    user = authorize(request, actions.STARTS, TokenScope.RUN)
    actions.ask_people(Actor.behind(request, user), _find(pk))
    return _shape(_find(pk))


@router.delete("/evaluations/{pk}", response={204: None}, summary="Delete an evaluation")
def delete_evaluation(request: HttpRequest, pk: Id) -> Status[None]:
    """Deletes its items too. Their runs, labels and checks remain."""
    user = authorize(request, actions.STARTS, TokenScope.WRITE)
    actions.delete(Actor.behind(request, user), _find(pk))
    return Status(204, None)
