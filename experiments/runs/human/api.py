"""Rounds that people write: your draft of the next one, sending it, and who writes next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any, Literal

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest
from ninja import Field, Schema

from experiments.api.entry import allow
from experiments.api.fields import NO_NUL, Body, Id, find
from experiments.api.problems import FieldError, Refusal
from experiments.api.versions import must_match
from experiments.core import audit, transcript
from experiments.core.audit import Verb
from experiments.models import HumanReply, Run
from experiments.models.api_token import Scope
from experiments.models.member import Role
from experiments.runs.api import RunOut, read, router
from experiments.runs.human import content, drafts, handover, sending
from experiments.runs.human.drafts import Refused, Unfit
from experiments.runs.human.handover import NOTE_CHARS

Long = Annotated[str, Field(max_length=20_000, pattern=NO_NUL)]
HypothesisStatus = Literal["open", "supported", "refuted"]


class HypothesisIn(Body):
    """One line of the list. Keep the number of one that was there before."""

    number: int = Field(ge=1, le=999)
    text: str = Field(min_length=1, max_length=content.HYPOTHESIS_CHARS, pattern=NO_NUL)
    status: HypothesisStatus = "open"
    reason: str = Field(
        "", max_length=content.HYPOTHESIS_CHARS, pattern=NO_NUL, description="the figure that decides it"
    )


class TurnIn(Body):
    """The whole of a draft: it takes the place of what was there."""

    what: Literal["experiment", "conclusion"] = Field("experiment", description="which part is sent")
    prose: Long = ""
    hypotheses: list[HypothesisIn] = Field([], max_length=content.MOST_HYPOTHESES)
    program: str = Field("", max_length=content.TEXTS["program"], pattern=NO_NUL)
    description: Long = ""
    labels: list[Annotated[str, Field(max_length=500, pattern=r"^[^\x00\r\n]*$")]] = Field([], max_length=20)
    reasoning: Long = ""
    bias: Long = ""


class HypothesisKept(Schema):
    number: int
    text: str
    status: str
    reason: str


class TurnOut(Schema):
    """Your draft of the round that comes next; `awaited` while the run waits for it."""

    round: int
    awaited: bool
    what: str
    prose: str
    hypotheses: list[HypothesisKept]
    program: str
    description: str
    labels: list[str]
    reasoning: str
    bias: str
    version: int = Field(description="0 while nothing has been saved")
    sent: datetime | None


class HandIn(Body):
    """Who writes from the next reply on."""

    backbone: Annotated[str, Field(max_length=40, pattern=NO_NUL)] = Field(examples=["person", "scripted"])
    backbone_model: Annotated[str, Field(max_length=200, pattern=NO_NUL)] = ""
    note: str = Field("", max_length=NOTE_CHARS, pattern=NO_NUL)


def turn_out(run: Run, turn: HumanReply) -> TurnOut:
    same = ("round", "what", "prose", "hypotheses", "program", "description", "reasoning", "bias", "version", "sent")
    lines = [line for line in turn.labels.split("\n") if line.strip()]
    due = turn.sent is None and turn.round == run.rounds + 1
    awaited = due and run.backbone == handover.people().backbone and transcript.awaits_reply(run)
    return TurnOut(labels=lines, awaited=awaited, **{name: getattr(turn, name) for name in same})


@contextmanager
def refused() -> Iterator[None]:
    """What is not taken is answered with 422 where a field is wrong, else 409."""
    try:
        yield
    except Unfit as unfit:
        errors = [FieldError(field=name, message=words) for name, words in unfit.problems.items()]
        raise Refusal("invalid", "It was not taken: see errors. The draft is kept.", errors) from unfit
    except Refused as refusal:
        raise Refusal("conflict", str(refusal)) from refusal


@router.get("/runs/{pk}/turn", response=TurnOut, summary="Read your draft of the next round")
def read_turn(request: HttpRequest, pk: Id) -> TurnOut:
    """With what carries over from the round before, where you have saved none."""
    user = allow(request)
    run = find(Run.objects.all(), pk=pk)
    return turn_out(run, drafts.current(run, user))


@router.put("/runs/{pk}/turn", response=TurnOut, summary="Save your draft of the next round")
def save_turn(request: HttpRequest, pk: Id, wanted: TurnIn) -> TurnOut:
    """Needs the ETag of the draft in If-Match, so that what you wrote elsewhere is not lost."""
    user = allow(request, Role.RESEARCHER, Scope.RUN)
    values: dict[str, Any] = wanted.model_dump()
    values["labels"] = "\n".join(wanted.labels)
    if len({each.number for each in wanted.hypotheses}) < len(wanted.hypotheses):
        error = FieldError(field="hypotheses", message="Each needs a number of its own.")
        raise Refusal("invalid", "The draft was not saved: see errors.", [error])
    with transaction.atomic(), refused():
        run = find(Run.objects.select_for_update(), pk=pk)
        before = drafts.current(run, user)
        must_match(request, turn_out(run, before))
        return turn_out(run, drafts.save(run.pk, user, before.round, before.version, transcript.storable(values)))


@router.post("/runs/{pk}/turn/send", response=TurnOut, summary="Send your draft: it becomes the reply")
def send_turn(request: HttpRequest, pk: Id) -> TurnOut:
    """The draft as it is saved. Needs its ETag in If-Match. 409 if somebody else was first; the draft is kept."""
    user = allow(request, Role.RESEARCHER, Scope.RUN)
    with transaction.atomic(), refused():
        run = find(Run.objects.select_for_update(), pk=pk)
        turn = drafts.current(run, user)
        must_match(request, turn_out(run, turn))
        if not turn.version:
            turn = drafts.save(run.pk, user, turn.round, 0, content.of(turn))
        sending.send(turn)
        audit.record(request, Verb.TURN_SENT, run, round=turn.round, what=turn.what)
        return turn_out(find(Run.objects.all(), pk=pk), turn)


@router.post("/runs/{pk}/turn/stop", response=RunOut, summary="Stop the program that a person sent")
def stop_program(request: HttpRequest, pk: Id) -> RunOut:
    """Whoever sent it; the run goes on, with what it had logged. 409 if none runs."""
    user = allow(request, Role.RESEARCHER, Scope.RUN)
    run = find(Run.objects.all(), pk=pk)
    with transaction.atomic(), refused():
        turn = sending.stop(run, user)
        audit.record(request, Verb.PROGRAM_STOPPED, run, round=turn.round)
        return read(pk, user)


@router.post("/runs/{pk}/hand-over", response=RunOut, summary="Hand a run over")
def hand_run_over(request: HttpRequest, pk: Id, wanted: HandIn) -> RunOut:
    """To a person (`person`), or to an agent, with a note. From the next reply on they write."""
    user: User = allow(request, Role.RESEARCHER, Scope.RUN)
    run = find(Run.objects.all(), pk=pk)
    with transaction.atomic(), refused():
        author = handover.author(run, wanted.backbone, wanted.backbone_model)
        handover.hand(run.pk, user, author, wanted.note)
        audit.record(
            request, Verb.RUN_HANDED, run, backbone=author.backbone, model=author.model, note=bool(wanted.note)
        )
        return read(pk, user)
