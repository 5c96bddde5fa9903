"""What people do to a run under way, as on its page: pause, resume, notes, limits, stop."""

from __future__ import annotations

from typing import Annotated

from django.db import transaction
from django.http import HttpRequest
from ninja import Field, Schema, Status

from experiments.api.auth import authorize
from experiments.api.fields import NO_NUL, Body, Id, find
from experiments.api.versions import must_match
from experiments.core.actors import Actor
from experiments.core.errors import InvalidFields, StateConflict
from experiments.core.system_names import SystemNameMasker
from experiments.models import Role, Run, TokenScope
from experiments.runs.api import RunOut, read_out, router
from experiments.runs.events.api import EventOut, event_out
from experiments.runs.steering import actions
from workers.record.limits import DEFAULT_LIMITS

ABOVE_ZERO = "A limit must be above 0, or null for none."


class NoteIn(Body):
    """What the agent is to hear."""

    text: str = Field(min_length=1, max_length=actions.MAX_CHARS, pattern=NO_NUL, examples=["Test it on snow, too."])


class LimitsOut(Schema):
    """What a run may use; null for no limit."""

    rounds: int | None
    tokens: int | None
    cost: float | None = Field(description="US dollars")
    seconds: float | None = Field(description="of work")


class LimitsIn(Body):
    """Limits that change; what is left out stays. Null is no limit."""

    rounds: Annotated[int, Field(le=10**6)] | None = None
    tokens: Annotated[int, Field(le=10**12)] | None = None
    cost: Annotated[float, Field(description="US dollars", le=10**6, allow_inf_nan=False)] | None = None
    seconds: Annotated[float, Field(le=10**8, allow_inf_nan=False)] | None = None
    why: str = Field("", max_length=actions.WHY_CHARS, pattern=NO_NUL)


def _steerer(request: HttpRequest, pk: int) -> Actor:
    """Return the actor who steers a run that exists; call `authorize` first."""
    find(Run.objects.all(), pk=pk)
    return Actor.of(request, Role.RESEARCHER)


@router.post("/runs/{pk}/pause", response=RunOut, summary="Pause a run")
def pause_run(request: HttpRequest, pk: Id) -> RunOut:
    """At once where no worker holds it, else after the round under way: until then it is `pausing`."""
    user = authorize(request, Role.RESEARCHER, TokenScope.RUN)
    actions.pause(_steerer(request, pk), pk)
    return read_out(pk, user)


@router.post("/runs/{pk}/resume", response=RunOut, summary="Resume a run")
def resume_run(request: HttpRequest, pk: Id) -> RunOut:
    """One that is paused, waits, failed or was stopped. One that is under way stays so."""
    user = authorize(request, Role.RESEARCHER, TokenScope.RUN)
    actions.resume(_steerer(request, pk), pk)
    return read_out(pk, user)


@router.post("/runs/{pk}/try-again", response=RunOut, summary="Resume a run that waits")
def try_run_again(request: HttpRequest, pk: Id) -> RunOut:
    """Only a run that waits for a person goes on; 409 for others."""
    user = authorize(request, Role.RESEARCHER, TokenScope.RUN)
    run = find(Run.objects.all(), pk=pk)
    if run.status != "waiting":
        raise StateConflict(f"Run {pk} is {run.get_status_display().lower()}: only one that waits can try again.")
    actions.resume(Actor.of(request, Role.RESEARCHER), pk)
    return read_out(pk, user)


@router.post("/runs/{pk}/stop", response=RunOut, summary="Stop a run")
def stop_run(request: HttpRequest, pk: Id) -> RunOut:
    """One that no worker holds ends at once, the others as soon as their worker sees it. A run that has ended stays."""
    user = authorize(request, Role.RESEARCHER, TokenScope.RUN)
    actions.stop(_steerer(request, pk), pk)
    return read_out(pk, user)


@router.post("/runs/{pk}/notes", response={201: EventOut}, summary="Send a message to the agent")
def send_note(request: HttpRequest, pk: Id, said: NoteIn) -> Status[EventOut]:
    """The agent reads it as part of its next message. Sent twice in a row, it is said once."""
    user = authorize(request, Role.RESEARCHER, TokenScope.RUN)
    return Status(201, event_out(actions.send_note(_steerer(request, pk), pk, said.text), SystemNameMasker(user)))


@router.get("/runs/{pk}/limits", response=LimitsOut, summary="Read the limits of a run")
def read_limits(request: HttpRequest, pk: Id) -> LimitsOut:
    authorize(request)
    return limits_of(find(Run.objects.all(), pk=pk))


@router.patch("/runs/{pk}/limits", response=LimitsOut, summary="Change the limits of a run")
def change_limits(request: HttpRequest, pk: Id, wanted: LimitsIn) -> LimitsOut:
    """Needs the ETag of the limits in If-Match. At a limit that is used up, the agent gives its final answer next."""
    authorize(request, Role.RESEARCHER, TokenScope.RUN)
    # A limit that is left out stays; null removes it. Only `exclude_unset` tells the two apart.
    changes = wanted.model_dump(exclude_unset=True, exclude={"why"})
    if wrong := {name: [ABOVE_ZERO] for name, value in changes.items() if value is not None and not value > 0}:
        raise InvalidFields("The limits were not changed: see errors.", wrong)
    # Locked, so that the limits cannot change between the comparison and the edit.
    with transaction.atomic():
        run = find(Run.objects.select_for_update(), pk=pk)
        must_match(request, limits_of(run))
        limits = {**limits_of(run).model_dump(), **changes}
        actions.change_limits(Actor.of(request, Role.RESEARCHER), pk, limits, wanted.why)
    return limits_of(find(Run.objects.all(), pk=pk))


def limits_of(run: Run) -> LimitsOut:
    return LimitsOut(**{name: run.limits.get(name) for name in DEFAULT_LIMITS})
