"""What people judge one after the other and blind, for scripts: the next item, answers, undo, close, the file."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Field, Router, Schema, Status

from experiments.api.entry import allow
from experiments.api.fields import Body, Id, RowNumber, RowOut, binary
from experiments.api.problems import Refusal
from experiments.core.actors import Actor
from experiments.judging import actions, answers_csv, waiting
from experiments.judging.desk import DESKS, Desk, find_desk
from experiments.models import Role, TokenScope

router = Router(tags=["Judging"])

Kind = Literal["trials", "checks"]
Answer = Literal["first", "second", "neither", "yes", "no", "unsure"]
"""Of a pair the first three, of an image the others."""


class OpenDeskOut(RowOut):
    """A trial or a label check that asks people."""

    kind: Kind
    id: int = Field(validation_alias="pk")
    name: str = Field(description="of the trial, or the label that images may show")
    created: datetime
    items: int = Field(validation_alias="total")
    left: int = Field(description="for you")


class JudgedItemOut(RowOut):
    """A pair of labels in the order drawn for you, or the label that an image may show; and what there is to see."""

    id: int = Field(validation_alias="pk")
    labels: list[str]
    truth: str = Field(description="what a synthetic neuron was built to respond to; empty where images show it")
    images: list[str] = Field(description="addresses; of exemplars, masked")
    whole_images: list[str] = Field(description="addresses of the same exemplars, not masked")


class NextItemOut(Schema):
    """The next item for you; null when nothing is left for you, or nobody is asked any more."""

    item: JudgedItemOut | None
    judged: int = Field(description="items that need nothing more of you")
    items: int


class AnswerIn(Body):
    """Which label of a pair says it better, or whether an image shows what the label says."""

    item: RowNumber
    answer: Answer
    seconds: Annotated[float, Field(ge=0, le=actions.MAX_SECONDS, allow_inf_nan=False)] | None = None


@router.get("/judging", response=list[OpenDeskOut], summary="List what people are asked to judge")
def list_judging(request: HttpRequest) -> list[OpenDeskOut]:
    """Trials before checks, the newest first."""
    user = allow(request)
    return [OpenDeskOut.from_orm(row) for row in waiting.list_waiting(user)]


@router.get("/judging/{kind}/{pk}/next", response=NextItemOut, summary="Read the next item to judge")
def next_item(request: HttpRequest, kind: Kind, pk: Id) -> NextItemOut:
    """Nothing tells whose a label is, what the unit answers to an image, nor what others said."""
    user = allow(request)
    return _find_next(user, kind, pk)


def _find_next(user: User, kind: Kind, pk: int) -> NextItemOut:
    desk = _find_desk(kind, pk)
    found = desk.list_next(user, 1)
    judged, items = desk.count_progress(user)
    return NextItemOut(item=JudgedItemOut.from_orm(found[0]) if found else None, judged=judged, items=items)


def _find_desk(kind: Kind, pk: int) -> Desk:
    desk = find_desk(kind, pk)
    if desk is None:
        raise Refusal("missing", f"There is no {DESKS[kind].NOUN} {pk}.")
    return desk


@router.post("/judging/{kind}/{pk}/answers", response={201: NextItemOut}, summary="Judge an item")
def create_answer(request: HttpRequest, kind: Kind, pk: Id, given: AnswerIn) -> Status[NextItemOut]:
    """Takes a reviewer; answers with the next item. The same answer twice is one; another one is refused. The last
    answer that a check was lacking has a worker go on with it."""
    user = allow(request, Role.REVIEWER, TokenScope.WRITE)
    _find_desk(kind, pk)
    actions.answer(Actor.behind(request, user), kind, pk, given.item, given.answer, given.seconds)
    return Status(201, _find_next(user, kind, pk))


@router.post("/judging/{kind}/{pk}/undo", response=NextItemOut, summary="Undo your last answer")
def undo_answer(request: HttpRequest, kind: Kind, pk: Id) -> NextItemOut:
    """Answers with its item, which is the next one again."""
    user = allow(request, Role.REVIEWER, TokenScope.WRITE)
    _find_desk(kind, pk)
    actions.undo(Actor.behind(request, user), kind, pk)
    return _find_next(user, kind, pk)


@router.post("/judging/{kind}/{pk}/close", response=NextItemOut, summary="Close judging")
def close_judging(request: HttpRequest, kind: Kind, pk: Id) -> NextItemOut:
    """Nobody is asked any more. Of a trial, for good, it is told which label is whose: takes an admin. A check is
    measured by the images judged so far: for who asked for it, and admins."""
    user = allow(request, Role.RESEARCHER, TokenScope.WRITE)
    _find_desk(kind, pk)
    actions.close(Actor.behind(request, user), kind, pk)
    return _find_next(user, kind, pk)


@router.get(
    "/judging/{kind}/{pk}/answers.csv", response=None, openapi_extra=binary("text/csv"), summary="Fetch all answers"
)
def fetch_answers(request: HttpRequest, kind: Kind, pk: Id) -> HttpResponseBase:
    """Every answer, and every item without one. Only once nobody is asked any more."""
    allow(request)
    return answers_csv.send_answers(_find_desk(kind, pk))
