"""API of pairwise trials: create them, ask backbones to judge, and read results of closed ones."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from ninja import Field, Query, Router, Schema, Status
from pydantic import BeforeValidator

from experiments.api.auth import authorize
from experiments.api.cursors import ListPage, Paging, page
from experiments.api.fields import NO_NUL, Body, FullName, Id, RowNumber, RowOut, Whole, find
from experiments.api.filters import read_filters, with_filters
from experiments.api.idempotency import answer_once
from experiments.core.actors import Actor
from experiments.core.errors import StateConflict
from experiments.models import Evaluation, Judge, PairwiseTrial, TokenScope
from experiments.pairwise import actions, lists, sources
from experiments.pairwise.form import DEFAULT_PAIRS, MAX_PAIRS, NewTrial
from experiments.pairwise.of_evaluation import JUDGES, MAX_JUDGES
from experiments.pairwise.results import trial_results

router = Router(tags=["Pairwise trials"])


Text = Annotated[str, Field(max_length=200, pattern=NO_NUL)]
Percent = Annotated[int, Field(ge=0, le=100)]


class TrialIn(Body):
    """Two or more sources of labels, compared pairwise. Filters can limit the units."""

    name: Annotated[str, Field(min_length=1, max_length=80, pattern=NO_NUL)]
    sources: list[Text] = Field(
        min_length=2, max_length=50, description="as import:milan, agent or agent:openai:gpt-4o"
    )
    circuits: bool = Field(False, description="labels of circuits, in place of those of units")
    model: Text = ""
    layer: Text = ""
    unit: Whole | None = None
    q: Text = Field("", description="words of a label")
    most: int = Field(DEFAULT_PAIRS, ge=1, le=MAX_PAIRS, description="pairs of two sources")
    repeats: Percent = Field(10, description="pairs shown twice, in percent of those")
    known_answers: Percent = Field(10, description="pairs whose answer is known, in percent of those")
    seed: Whole = 0


class TrialOfEvaluationIn(Body):
    """Two or more sources of the evaluation, compared pairwise."""

    sources: list[Text] = Field(min_length=2, max_length=50, description="as agent, one-shot, person, import:milan")
    most: int = Field(DEFAULT_PAIRS, ge=1, le=MAX_PAIRS, description="pairs of two sources")
    judges_wanted: int = Field(JUDGES, ge=1, le=MAX_JUDGES, description="people that shall judge each pair")


class JudgeIn(Body):
    """A backbone that accepts images, and its cost limit."""

    backbone: Annotated[str, Field(min_length=1, max_length=300, pattern=NO_NUL)] = Field(examples=["openai:gpt-4o"])
    cost_limit: float = Field(5.0, gt=0, le=actions.MAX_COST, description="US dollars")
    unpriced: bool = Field(False, description="though its price is not known, so that the limit cannot hold")


class BackboneJudgeOut(RowOut):
    """A backbone as a judge: its progress and its cost."""

    id: int
    backbone: str
    model: str = Field(validation_alias="backbone_model")
    judged: int = Field(validation_alias="done")
    status: str = Field("", validation_alias="job.status", description="of its work; empty where none was asked for")
    result: str = Field("", validation_alias="job.result")
    cost: float | None = Field(
        validation_alias="known_cost", description="US dollars; null where the price is not known"
    )
    cost_limit: float


class TrialOut(RowOut):
    """Labels of several sources, compared in pairs. Which label is whose is hidden until the trial is closed."""

    id: int
    name: str
    owner: FullName
    created: datetime
    closed: datetime | None
    sources: Annotated[list[str], BeforeValidator(lambda keys: [sources.words(key) for key in keys])]
    pairs: int = Field(validation_alias="size")
    judged: int = Field(validation_alias="mine", description="by you")
    left: int = Field(description="pairs that you are offered")
    evaluation: int | None = Field(validation_alias="evaluation_id", description="whose labels are compared")
    judges_wanted: int | None = Field(description="people that shall judge each pair; null for no number")
    votes: int = Field(description="of people")
    left_out: dict[str, int]


@with_filters(lists.FILTERS)
class TrialFilters(Schema):
    """Filters as on the page of trials. All are optional."""


class ProportionOut(Schema):
    """A share of votes with its 95 % interval over units; null if there are no votes."""

    hits: int
    n: int
    units: int
    value: float | None
    low: float | None
    high: float | None


class PreferenceOut(RowOut):
    """How often labels of one source were chosen over those of another, among the votes that decide."""

    source: str = Field(validation_alias="row")
    over: str = Field(validation_alias="column")
    preferred: ProportionOut
    neither: int
    unread: int


PreferencesOut = Annotated[
    list[PreferenceOut], BeforeValidator(lambda table: [cell for _, row in table.rows for cell in row if cell])
]


class JudgeOut(RowOut):
    """How a judge voted, and how reliable the judge is."""

    name: str
    kind: Annotated[Literal["person", "backbone"], BeforeValidator(lambda user: "person" if user else "backbone")] = (
        Field(validation_alias="judge.user_id")
    )
    judged: int = Field(validation_alias="answered")
    neither: int
    unread: int
    repeated: ProportionOut = Field(description="the same answer to the same pair, the other way round")
    known_answers: ProportionOut = Field(description="the right answer where it is known")
    first: ProportionOut = Field(description="the label that stood first")
    seconds: float | None
    cost: float | None = Field(
        validation_alias="judge.known_cost", description="US dollars; null where the price is not known"
    )
    preferences: PreferencesOut = Field(validation_alias="table")


class ResultsOut(RowOut):
    """Preferences of people together, and of each judge. Backbones are never counted among people."""

    people: PreferencesOut = Field(validation_alias="together")
    judges: list[JudgeOut]


# --- trials ---


@router.get("/trials", response=ListPage[TrialOut], summary="List trials")
def list_trials(request: HttpRequest, asked: Query[TrialFilters], paging: Query[Paging]) -> ListPage[TrialOut]:
    """Newest first, filtered as on the page of trials."""
    user = authorize(request)
    found = lists.trials_from(read_filters(asked), user)
    return page(request, found.require_sense(), ["-pk"], paging, TrialOut.from_orm)


@router.post("/trials", response={201: TrialOut}, summary="Create a trial")
def create_trial(request: HttpRequest, wanted: TrialIn, response: HttpResponse) -> Status[object]:
    """Requires an admin. All who may judge are notified. `left_out` counts comparisons that are not included, by
    reason."""
    by = Actor.behind(request, authorize(request, actions.MANAGES, TokenScope.WRITE))

    def make() -> tuple[TrialOut, str]:
        typed = QueryDict(mutable=True)
        given = wanted.model_dump(exclude={"sources"}, exclude_none=True)
        typed.update({name: str(value) for name, value in given.items()})
        typed.setlist("source", wanted.sources)
        trial = actions.make_trial(by, NewTrial(typed, sources.list_sources()))
        return TrialOut.from_orm(find(lists.trials(by.person), pk=trial.pk)), reverse("api:read_trial", args=[trial.pk])

    return Status(201, answer_once(request, response, by.person, make))


@router.post("/evaluations/{pk}/trials", response={201: TrialOut}, summary="Compare labels of an evaluation")
def create_trial_of_evaluation(
    request: HttpRequest, pk: Id, wanted: TrialOfEvaluationIn, response: HttpResponse
) -> Status[object]:
    """Compares labels of the evaluation in pairs. Each pair is offered until the given number of people have judged
    it. Requires an admin. Once the trial is closed, its preferences are part of the evaluation's result."""
    by = Actor.behind(request, authorize(request, actions.MANAGES, TokenScope.WRITE))
    row = find(Evaluation.objects.all(), pk=pk)

    def make() -> tuple[TrialOut, str]:
        numbers = {"most": wanted.most, "judges_wanted": wanted.judges_wanted}
        trial = actions.make_trial_of(by, row, wanted.sources, **numbers)
        return TrialOut.from_orm(find(lists.trials(by.person), pk=trial.pk)), reverse("api:read_trial", args=[trial.pk])

    return Status(201, answer_once(request, response, by.person, make))


@router.get("/trials/{pk}", response=TrialOut, summary="Read a trial")
def read_trial(request: HttpRequest, pk: Id) -> TrialOut:
    user = authorize(request)
    return TrialOut.from_orm(find(lists.trials(user), pk=pk))


# --- backbones ---


@router.get("/trials/{pk}/judges", response=list[BackboneJudgeOut], summary="List the backbones that judge")
def list_judges(request: HttpRequest, pk: Id) -> list[BackboneJudgeOut]:
    """Lists the backbones that judge, with their progress."""
    authorize(request)
    rows = lists.judges(find(PairwiseTrial.objects.all(), pk=pk)).filter(user=None)
    return [BackboneJudgeOut.from_orm(row) for row in rows]


@router.post("/trials/{pk}/judges", response={202: BackboneJudgeOut}, summary="Ask a backbone to judge")
def ask_judge(request: HttpRequest, pk: Id, wanted: JudgeIn) -> Status[BackboneJudgeOut]:
    """Judges the pairs that it has not judged yet, in the background. Asking again resumes it. Requires an admin,
    because it costs money."""
    user = authorize(request, actions.MANAGES, TokenScope.WRITE)
    find(PairwiseTrial.objects.all(), pk=pk)
    by, limit = Actor.behind(request, user), wanted.cost_limit
    judge = actions.ask_backbone(by, pk, wanted.backbone, limit, unpriced=wanted.unpriced)
    return Status(202, BackboneJudgeOut.from_orm(lists.judges(judge.trial).get(pk=judge.pk)))


@router.post("/trials/{pk}/judges/{number}/stop", response=BackboneJudgeOut, summary="Stop a backbone that judges")
def stop_judge(request: HttpRequest, pk: Id, number: RowNumber) -> BackboneJudgeOut:
    """Stops after the current pair; votes are kept. `number` is the id of the judge."""
    user = authorize(request, actions.MANAGES, TokenScope.WRITE)
    judge = find(Judge.objects.select_related("job", "trial"), trial=pk, pk=number, user=None)
    actions.stop_backbone(Actor.behind(request, user), judge)
    return BackboneJudgeOut.from_orm(lists.judges(judge.trial).get(pk=judge.pk))


# --- results ---


@router.get("/trials/{pk}/results", response=ResultsOut, summary="Read the results of a trial")
def read_results(request: HttpRequest, pk: Id) -> ResultsOut:
    """Available once the trial is closed."""
    authorize(request)
    row = find(PairwiseTrial.objects.all(), pk=pk)
    if row.closed is None:
        raise StateConflict(f"Trial {pk} is open: whose the labels are is hidden until it is closed.")
    return ResultsOut.from_orm(trial_results(row))
