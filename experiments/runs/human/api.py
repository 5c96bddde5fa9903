"""Rounds that people write: your draft of the next one, sending it, and who writes next."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from django.db import transaction
from django.http import HttpRequest
from ninja import Field, Schema

from experiments.api.auth import authorize
from experiments.api.fields import NO_NUL, Body, Id, find
from experiments.api.versions import must_match
from experiments.core import transcript
from experiments.core.actors import Actor
from experiments.core.compatibility import PERSON
from experiments.core.errors import InvalidInput
from experiments.models import HumanReply, Role, Run, TokenScope
from experiments.runs.api import HypothesisKept, RunOut, read_out, router
from experiments.runs.human import actions, drafts

Long = Annotated[str, Field(max_length=20_000, pattern=NO_NUL)]
HypothesisStatus = Literal["open", "supported", "refuted"]


class HypothesisIn(Body):
    """One line of the list. Keep the number of one that was there before."""

    number: int = Field(ge=1, le=999)
    text: str = Field(min_length=1, max_length=drafts.HYPOTHESIS_CHARS, pattern=NO_NUL)
    status: HypothesisStatus = "open"
    reason: str = Field(
        "", max_length=drafts.HYPOTHESIS_CHARS, pattern=NO_NUL, description="the figure that decides it"
    )


class ReplyIn(Body):
    """The whole of a draft: it takes the place of what was there."""

    what: Literal["experiment", "conclusion"] = Field("experiment", description="which part is sent")
    prose: Long = ""
    hypotheses: list[HypothesisIn] = Field([], max_length=drafts.MAX_HYPOTHESES)
    program: str = Field("", max_length=drafts.TEXTS["program"], pattern=NO_NUL)
    description: Long = ""
    labels: list[Annotated[str, Field(max_length=500, pattern=r"^[^\x00\r\n]*$")]] = Field([], max_length=20)
    reasoning: Long = ""
    bias: Long = ""


class ReplyOut(Schema):
    """Your draft of the round that comes next; `waiting_for_person` while the run waits for it."""

    round: int
    waiting_for_person: bool
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


class HandoverIn(Body):
    """Who writes from the next reply on."""

    backbone: Annotated[str, Field(max_length=40, pattern=NO_NUL)] = Field(examples=["person", "scripted"])
    backbone_model: Annotated[str, Field(max_length=200, pattern=NO_NUL)] = ""
    note: str = Field("", max_length=actions.NOTE_CHARS, pattern=NO_NUL)


def _reply_out(run: Run, draft: HumanReply) -> ReplyOut:
    same = ("round", "what", "prose", "hypotheses", "program", "description", "reasoning", "bias", "version", "sent")
    lines = [line for line in draft.labels.split("\n") if line.strip()]
    due = draft.sent is None and draft.round == run.rounds + 1
    waiting = due and run.backbone == PERSON and transcript.awaits_reply(run)
    return ReplyOut(labels=lines, waiting_for_person=waiting, **{name: getattr(draft, name) for name in same})


@router.get("/runs/{pk}/reply", response=ReplyOut, summary="Read your draft of the next round")
def read_reply(request: HttpRequest, pk: Id) -> ReplyOut:
    """With what carries over from the round before, where you have saved none."""
    user = authorize(request)
    run = find(Run.objects.all(), pk=pk)
    return _reply_out(run, drafts.find_current(run, user))


@router.put("/runs/{pk}/reply", response=ReplyOut, summary="Save your draft of the next round")
def save_reply(request: HttpRequest, pk: Id, wanted: ReplyIn) -> ReplyOut:
    """Needs the ETag of the draft in If-Match, so that what you wrote elsewhere is not lost."""
    user = authorize(request, Role.RESEARCHER, TokenScope.RUN)
    values: dict[str, Any] = transcript.strip_unstorable(wanted.model_dump() | {"labels": "\n".join(wanted.labels)})
    if len({each.number for each in wanted.hypotheses}) < len(wanted.hypotheses):
        raise InvalidInput("Each needs a number of its own.", "hypotheses")
    # Locked, so that the draft cannot change between the comparison and the edit.
    with transaction.atomic():
        run = find(Run.objects.select_for_update(), pk=pk)
        draft = drafts.find_current(run, user)
        must_match(request, _reply_out(run, draft))
        return _reply_out(run, actions.save_draft(Actor.of(request), run.pk, draft.round, draft.version, values))


@router.post("/runs/{pk}/reply/send", response=ReplyOut, summary="Send your draft: it becomes the reply")
def send_reply(request: HttpRequest, pk: Id) -> ReplyOut:
    """Send the saved draft. Needs its ETag in If-Match. 409 if another user was first; the draft is kept."""
    user = authorize(request, Role.RESEARCHER, TokenScope.RUN)
    with transaction.atomic():
        run = find(Run.objects.select_for_update(), pk=pk)
        draft = drafts.find_current(run, user)
        must_match(request, _reply_out(run, draft))
        # What carries over from the round before may be sent unchanged, but must be saved first.
        if not draft.version:
            draft = actions.save_draft(Actor.of(request), run.pk, draft.round, 0, draft.values)
        actions.send_reply(Actor.of(request), draft)
        return _reply_out(find(Run.objects.all(), pk=pk), draft)


@router.post("/runs/{pk}/reply/stop", response=RunOut, summary="Stop the program that a person sent")
def stop_program(request: HttpRequest, pk: Id) -> RunOut:
    """Stop the program, also of another user. The run continues with what was logged. 409 if no program runs."""
    user = authorize(request, Role.RESEARCHER, TokenScope.RUN)
    actions.stop_program(Actor.of(request), find(Run.objects.all(), pk=pk))
    return read_out(pk, user)


@router.post("/runs/{pk}/hand-over", response=RunOut, summary="Hand over a run")
def hand_run_over(request: HttpRequest, pk: Id, wanted: HandoverIn) -> RunOut:
    """To a person (`person`), or to another backbone, with a note. From the next reply on they write."""
    user = authorize(request, Role.RESEARCHER, TokenScope.RUN)
    run = find(Run.objects.all(), pk=pk)
    actions.hand_over(Actor.of(request), run.pk, wanted.backbone, wanted.backbone_model, wanted.note)
    return read_out(pk, user)
