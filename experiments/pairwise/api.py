"""Pairwise trials of labels: what there is, the next pair, an answer, and results once a trial is closed."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Field, Query, Router, Schema, Status

from experiments.api.cursors import Page, Paging, page
from experiments.api.entry import allow
from experiments.api.fields import Body, Id, RowNumber, find
from experiments.api.problems import Refusal
from experiments.core import audit
from experiments.core.audit import Verb
from experiments.core.display_name import person
from experiments.models import PairwiseTrial
from experiments.models.api_token import Scope
from experiments.models.member import Role
from experiments.pairwise import judging, sources
from experiments.pairwise.proportions import Share
from experiments.pairwise.results import Table, Worth, results

router = Router(tags=["Two-way choices"])


class TrialOut(Schema):
    """Labels of several sources, compared two at a time; which is whose is hidden until it is closed."""

    id: int
    name: str
    owner: str
    created: datetime
    closed: datetime | None
    sources: list[str]
    pairs: int
    judged: int = Field(description="by you")
    left_out: dict[str, int]


class PairOut(Schema):
    """Two labels in the order drawn for you, and what there is to see: the truth, or addresses of exemplars."""

    id: int
    first: str
    second: str
    truth: str
    masked: list[str]
    raw: list[str]


class NextOut(Schema):
    """The next pair for you; null when you have judged all, or the trial is closed."""

    pair: PairOut | None
    judged: int
    pairs: int


class AnswerIn(Body):
    """Which label says it better."""

    pair: RowNumber
    answer: Literal["first", "second", "neither"]
    seconds: Annotated[float, Field(ge=0, le=judging.LONGEST_SECONDS, allow_inf_nan=False)] | None = None


class ProportionOut(Schema):
    """A share with Wilson's 95 % interval; null where there is nothing to divide."""

    hits: int
    n: int
    value: float | None
    low: float | None
    high: float | None


class PreferenceOut(Schema):
    """How often labels of one source were chosen over those of another, of the choices that decide."""

    source: str
    over: str
    preferred: ProportionOut
    neither: int
    unread: int


class JudgeOut(Schema):
    """What a judge chose and is worth."""

    name: str
    kind: Literal["person", "backbone"]
    judged: int
    neither: int
    unread: int
    repeated: ProportionOut = Field(description="the same answer to the same pair, the other way round")
    gold: ProportionOut = Field(description="the right answer where it is known")
    first: ProportionOut = Field(description="the label that stood first")
    seconds: float | None
    cost: float | None = Field(description="US dollars; null where the price is not known")
    preferences: list[PreferenceOut]


class ResultsOut(Schema):
    """Preferences of people together, and of each judge; backbones are never counted among people."""

    people: list[PreferenceOut]
    judges: list[JudgeOut]


def trial_out(row: PairwiseTrial) -> TrialOut:
    names = ("id", "name", "created", "closed", "left_out")
    return TrialOut(
        owner=person(row.owner),
        sources=[sources.words(key) for key in row.sources],
        pairs=getattr(row, "size", None) or 0,
        judged=getattr(row, "mine", 0),
        **{name: getattr(row, name) for name in names},
    )


def trials(user: User) -> QuerySet[PairwiseTrial]:
    return judging.counted(PairwiseTrial.objects.select_related("owner"), user)


@router.get("/trials", response=Page[TrialOut], summary="List trials")
def list_trials(request: HttpRequest, paging: Query[Paging]) -> Page[TrialOut]:
    """The newest first."""
    user = allow(request)
    return page(request, trials(user), ["-pk"], paging, trial_out)


@router.get("/trials/{pk}", response=TrialOut, summary="Read a trial")
def read_trial(request: HttpRequest, pk: Id) -> TrialOut:
    user = allow(request)
    return trial_out(find(trials(user), pk=pk))


@router.get("/trials/{pk}/next", response=NextOut, summary="Read the next pair to judge")
def next_pair(request: HttpRequest, pk: Id) -> NextOut:
    """Nothing tells whose the labels are."""
    user = allow(request)
    return upcoming(find(trials(user), pk=pk), user)


def upcoming(row: PairwiseTrial, user: User) -> NextOut:
    out = trial_out(row)
    found = [] if row.closed else judging.next_shown(row, user, 1)
    return NextOut(pair=pair_out(found[0]) if found else None, judged=out.judged, pairs=out.pairs)


def pair_out(shown: judging.Shown) -> PairOut:
    masked, raw = ([pair[place].file for pair in shown.exemplars] for place in (0, 1))
    return PairOut(
        id=shown.pk, first=shown.first, second=shown.second, truth=shown.truth, masked=list(masked), raw=list(raw)
    )


@router.post("/trials/{pk}/choices", response={201: NextOut}, summary="Judge a pair")
def create_choice(request: HttpRequest, pk: Id, choice: AnswerIn) -> Status[NextOut]:
    """Takes a reviewer; answers with the next pair. The same answer twice is one; another one is refused."""
    user = allow(request, Role.REVIEWER, Scope.WRITE)
    find(PairwiseTrial.objects.all(), pk=pk)
    try:
        with transaction.atomic():
            kept, new = judging.answer(user, pk, choice.pair, choice.answer, choice.seconds)
            if new:
                audit.record(request, Verb.VOTE_CAST, kept.pair, trial=pk)
    except judging.Refused as refusal:
        raise Refusal("conflict", str(refusal)) from None
    return Status(201, upcoming(find(trials(user), pk=pk), user))


@router.get("/trials/{pk}/results", response=ResultsOut, summary="Read what came of a trial")
def read_results(request: HttpRequest, pk: Id) -> ResultsOut:
    """Only once it is closed."""
    allow(request)
    row = find(PairwiseTrial.objects.all(), pk=pk)
    if row.closed is None:
        raise Refusal("conflict", f"PairwiseTrial {pk} is open: whose the labels are is hidden until it is closed.")
    found = results(row)
    judges = [judge_out(each, "person") for each in found.people]
    return ResultsOut(
        people=preferences(found.together), judges=[*judges, *(judge_out(each, "backbone") for each in found.backbones)]
    )


def judge_out(worth: Worth, kind: Literal["person", "backbone"]) -> JudgeOut:
    return JudgeOut(
        name=worth.name,
        kind=kind,
        judged=worth.answered,
        neither=worth.neither,
        unread=worth.unread,
        repeated=proportion_out(worth.repeated),
        gold=proportion_out(worth.gold),
        first=proportion_out(worth.first),
        seconds=worth.seconds,
        cost=worth.judge.known_cost,
        preferences=preferences(worth.table),
    )


def preferences(table: Table) -> list[PreferenceOut]:
    cells = [cell for _, row in table.rows for cell in row if cell]
    return [
        PreferenceOut(
            source=cell.row,
            over=cell.column,
            preferred=proportion_out(cell.preferred),
            neither=cell.neither,
            unread=cell.unread,
        )
        for cell in cells
    ]


def proportion_out(share: Share) -> ProportionOut:
    return ProportionOut(hits=share.hits, n=share.n, value=share.value, low=share.low, high=share.high)
