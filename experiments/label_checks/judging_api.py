"""Images that people judge for the label check, for scripts: the next one, answers, undo, finish, the file."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from ninja import Field, Schema, Status

from experiments.api.entry import allow
from experiments.api.fields import Body, Id, RowNumber, RowOut, binary, find
from experiments.core.actors import Actor
from experiments.core.visibility import visible_to
from experiments.label_checks import actions, answers_csv, judging, judging_actions
from experiments.label_checks.api import router
from experiments.models import LabelCheck, Role, TokenScope


class OpenJudgingOut(RowOut):
    """A check that waits for people."""

    check: int = Field(validation_alias="check.pk")
    label: str = Field(validation_alias="check.text")
    created: datetime = Field(validation_alias="check.created")
    images: int
    judged: int = Field(description="with enough answers")
    left: int = Field(description="for you")
    judges: int = Field(validation_alias="wanted", description="people who answer for each image")


class QuestionOut(Schema):
    """An image to judge, and the label that it may show."""

    id: int
    label: str
    image: str = Field(description="address of the image, which names no key")


class NextQuestionOut(Schema):
    """The next image for you; null when nothing is left for you, or nobody is asked any more."""

    question: QuestionOut | None
    judged: int = Field(description="images that need nothing more of you")
    images: int


class AnswerIn(Body):
    """Whether the image shows what the label says."""

    question: RowNumber
    answer: Literal["yes", "no", "unsure"]
    seconds: Annotated[float, Field(ge=0, le=judging_actions.LONGEST_SECONDS, allow_inf_nan=False)] | None = None


class FinishOut(Schema):
    """How the check stands once nobody is asked any more."""

    id: int
    status: str


@router.get("/judging", response=list[OpenJudgingOut], summary="List checks that wait for people")
def list_checks_to_judge(request: HttpRequest) -> list[OpenJudgingOut]:
    """The newest first."""
    user = allow(request)
    return [OpenJudgingOut.from_orm(row) for row in judging.list_waiting(user)]


@router.get("/checks/{pk}/next", response=NextQuestionOut, summary="Read the next image to judge")
def next_question(request: HttpRequest, pk: Id) -> NextQuestionOut:
    """Nothing tells what the unit answers, nor what others said."""
    user = allow(request)
    return _find_next(user, pk)


def _find_next(user: User, pk: int) -> NextQuestionOut:
    row = find(visible_to(LabelCheck.objects.all()), pk=pk)
    found = [
        QuestionOut(id=each.pk, label=each.label, image=reverse("api:fetch_judged_image", args=[pk, each.pk]))
        for each in judging.list_next(row, user, 1)
    ]
    judged, images = judging.count_progress(row, user)
    return NextQuestionOut(question=found[0] if found else None, judged=judged, images=images)


@router.get(
    "/checks/{pk}/images/{number}",
    response=None,
    openapi_extra=binary("image/png"),
    summary="Fetch an image to judge",
)
def fetch_judged_image(request: HttpRequest, pk: Id, number: Id) -> HttpResponseBase:
    """Takes a reviewer. The PNG, while people are asked; nothing tells its key."""
    allow(request, Role.REVIEWER)
    return judging.serve_question(request, pk, number)


@router.post("/checks/{pk}/answers", response={201: NextQuestionOut}, summary="Judge an image")
def create_answer(request: HttpRequest, pk: Id, said: AnswerIn) -> Status[NextQuestionOut]:
    """Takes a reviewer; answers with the next image. The same answer twice is one; another one is refused. The last
    answer that was lacking has a worker go on with the check."""
    user = allow(request, Role.REVIEWER, TokenScope.WRITE)
    find(visible_to(LabelCheck.objects.all()), pk=pk)
    judging_actions.answer(Actor.behind(request, user), pk, said.question, said.answer, said.seconds)
    return Status(201, _find_next(user, pk))


@router.post("/checks/{pk}/undo", response=NextQuestionOut, summary="Undo your last answer")
def undo_answer(request: HttpRequest, pk: Id) -> NextQuestionOut:
    """Answers with its image, which is the next one again."""
    user = allow(request, Role.REVIEWER, TokenScope.WRITE)
    find(visible_to(LabelCheck.objects.all()), pk=pk)
    judging_actions.undo_answer(Actor.behind(request, user), pk)
    return _find_next(user, pk)


@router.post("/checks/{pk}/finish", response={202: FinishOut}, summary="Finish a check with the images judged so far")
def finish_judging(request: HttpRequest, pk: Id) -> Status[FinishOut]:
    """For who asked for the check, and admins. Nobody is asked any more; a worker measures what is there."""
    user = allow(request, actions.STARTS, TokenScope.RUN)
    find(visible_to(LabelCheck.objects.all()), pk=pk)
    row = judging_actions.finish(Actor.behind(request, user), pk)
    return Status(202, FinishOut(id=row.pk, status=row.status))


@router.get(
    "/checks/{pk}/answers.csv", response=None, openapi_extra=binary("text/csv"), summary="Fetch what people said"
)
def fetch_answers(request: HttpRequest, pk: Id) -> HttpResponseBase:
    """Every answer, and every image without one. Only once nobody is asked any more."""
    allow(request)
    return answers_csv.send_answers(find(visible_to(LabelCheck.objects.all()), pk=pk))
