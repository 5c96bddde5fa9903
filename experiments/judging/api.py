"""API of judging: the next item, answers, undo, close, and the file of answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Field, Router, Schema, Status

from experiments.api.auth import authorize
from experiments.api.fields import Body, Id, RowNumber, RowOut, binary
from experiments.api.problems import Refusal
from experiments.core.actors import Actor
from experiments.judging import actions, answers_csv, waiting
from experiments.judging.desk import DESKS, Desk, find_desk
from experiments.models import Role, TokenScope

router = Router(tags=["Judging"])

Kind = Literal["trials", "checks"]
Answer = Literal["first", "second", "neither", "yes", "no", "unsure"]
"""The first three are for pairs, the others for images."""


class OpenDeskOut(RowOut):
    """A trial or a label check that asks people."""

    kind: Kind
    id: int = Field(validation_alias="pk")
    name: str = Field(description="of the trial, or the label that images may show")
    created: datetime
    items: int = Field(validation_alias="total")
    left: int = Field(description="for you")


class JudgedItemOut(RowOut):
    """A pair of labels in the order drawn for you, or the label that an image may show, with the images to look at."""

    id: int = Field(validation_alias="pk")
    labels: list[str]
    truth: str = Field(description="what a synthetic neuron was built to respond to; empty where images show it")
    images: list[str] = Field(description="addresses; of exemplars, masked")
    whole_images: list[str] = Field(description="addresses of the same exemplars, not masked")


class NextItemOut(Schema):
    """The next item for you; null if you have judged all or judging is closed."""

    item: JudgedItemOut | None
    judged: int = Field(description="items that need nothing more of you")
    items: int


class AnswerIn(Body):
    """Which label of a pair fits better, or whether an image shows what the label says."""

    item: RowNumber
    answer: Answer
    seconds: Annotated[float, Field(ge=0, le=actions.MAX_SECONDS, allow_inf_nan=False)] | None = None


@router.get("/judging", response=list[OpenDeskOut], summary="List what people are asked to judge")
def list_judging(request: HttpRequest) -> list[OpenDeskOut]:
    """Lists trials before label checks, newest first."""
    user = authorize(request)
    return [OpenDeskOut.from_orm(row) for row in waiting.list_waiting(user)]


@router.get("/judging/{kind}/{pk}/next", response=NextItemOut, summary="Read the next item to judge")
def next_item(request: HttpRequest, kind: Kind, pk: Id) -> NextItemOut:
    """The response does not reveal whose a label is, how the unit responds to an image, or what others answered."""
    user = authorize(request)
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
    """Requires the reviewer role. Returns the next item. Repeating the same answer changes nothing; a different
    answer is refused. The last missing answer of a label check makes a worker resume it."""
    user = authorize(request, Role.REVIEWER, TokenScope.WRITE)
    _find_desk(kind, pk)
    actions.answer(Actor.behind(request, user), kind, pk, given.item, given.answer, given.seconds)
    return Status(201, _find_next(user, kind, pk))


@router.post("/judging/{kind}/{pk}/undo", response=NextItemOut, summary="Undo your last answer")
def undo_answer(request: HttpRequest, kind: Kind, pk: Id) -> NextItemOut:
    """Returns the item of the deleted answer, which is the next one again."""
    user = authorize(request, Role.REVIEWER, TokenScope.WRITE)
    _find_desk(kind, pk)
    actions.undo(Actor.behind(request, user), kind, pk)
    return _find_next(user, kind, pk)


@router.post("/judging/{kind}/{pk}/close", response=NextItemOut, summary="Close judging")
def close_judging(request: HttpRequest, kind: Kind, pk: Id) -> NextItemOut:
    """Closes judging for all. Closing a trial is final, reveals which label is whose, and requires an admin. A label
    check is computed from the images judged so far; the person who asked for it and admins can close it."""
    user = authorize(request, Role.RESEARCHER, TokenScope.WRITE)
    _find_desk(kind, pk)
    actions.close(Actor.behind(request, user), kind, pk)
    return _find_next(user, kind, pk)


@router.get(
    "/judging/{kind}/{pk}/answers.csv", response=None, openapi_extra=binary("text/csv"), summary="Fetch all answers"
)
def fetch_answers(request: HttpRequest, kind: Kind, pk: Id) -> HttpResponseBase:
    """Returns every answer and every item without one. Available once judging is closed."""
    authorize(request)
    return answers_csv.send_answers(_find_desk(kind, pk))
