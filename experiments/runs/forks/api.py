"""Runs that begin with the rounds of another, as on the page Fork."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Field, Status

from experiments.api.auth import authorize
from experiments.api.fields import NO_NUL, Body, Id, RunLimitsIn, find
from experiments.core.actors import Actor
from experiments.core.params import MAX_COUNT
from experiments.models import Role, Run, TokenScope
from experiments.runs import actions
from experiments.runs.api import RunOut, router
from experiments.runs.asking.api import Text, create_run_row
from experiments.runs.forks import lineage
from experiments.runs.forks.form import ForkForm
from experiments.runs.steering.actions import MAX_CHARS
from workers.record.limits import QUESTION_CHARS

Words = Annotated[str, Field(max_length=QUESTION_CHARS, pattern=NO_NUL)]


class ForkIn(Body):
    """Where to leave the run, and what changes; what is left out stays as it is there."""

    round: int = Field(ge=1, le=MAX_COUNT, description="the last round that is copied", examples=[3])
    note: str = Field("", max_length=MAX_CHARS, pattern=NO_NUL)
    question: Words = ""
    backbone: Text = ""
    backbone_model: Text = ""
    seed: int | None = Field(None, ge=0, le=MAX_COUNT)
    unpriced: bool = Field(False, description="as of a new run")
    limits: RunLimitsIn | None = Field(None, description="as of a new run; the rounds that are copied count")


@router.post("/runs/{pk}/forks", response={201: RunOut}, summary="Fork a run after a round")
def fork_run(request: HttpRequest, pk: Id, wanted: ForkIn, response: HttpResponse) -> Status[dict[str, Any]]:
    """A run that begins with the rounds of this one. Sent again with the same Idempotency-Key, it makes no other."""
    owner = authorize(request, Role.RESEARCHER, TokenScope.RUN)
    source = find(Run.objects.all(), pk=pk)
    # Limits and note have their own rules, below.
    named = wanted.model_dump(include={"question", "backbone", "seed", "unpriced"})
    changes: dict[str, Any] = {name: value for name, value in named.items() if value not in ("", None)}
    if wanted.backbone or wanted.backbone_model:  # another backbone has other models
        changes["backbone_model"] = wanted.backbone_model
    changes |= {"note": wanted.note} | (wanted.limits.model_dump() if wanted.limits else {})
    form = ForkForm(source, lineage.find_fork_point(source, wanted.round), changes)
    return create_run_row(request, response, lambda: actions.ask(Actor.behind(request, owner), form))
