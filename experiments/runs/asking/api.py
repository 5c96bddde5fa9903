"""Asking: runs are created. What is done to them afterwards is in `steering`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Field, Status
from pydantic import ValidationInfo, field_validator

from experiments.api.auth import authorize
from experiments.api.fields import NO_NUL, Body, Id, RowNumber, RunLimitsIn, UnitNumber, Whole, find
from experiments.api.idempotency import answer_once
from experiments.core import access
from experiments.core.actors import Actor
from experiments.core.errors import InvalidFields
from experiments.models import Role, Run, TokenScope
from experiments.runs import actions
from experiments.runs.api import RunOut, read_out, router
from experiments.runs.asking import form as forms
from workers.record import tasks
from workers.record.limits import DEFAULT_LIMITS, MAX_EXEMPLARS, MAX_REFLECTIONS, QUESTION_CHARS

Text = Annotated[str, Field(max_length=500, pattern=NO_NUL)]


class RunIn(Body):
    """A query, as on the page New run."""

    question: str = Field(
        min_length=1, max_length=QUESTION_CHARS, pattern=NO_NUL, examples=["What does unit 7 respond to?"]
    )
    circuit: RowNumber | None = Field(None, description="a circuit in the place of model, layer and unit")
    model: Text = Field("", examples=["toybox"], validate_default=True)
    layer: Text = Field("", examples=["layer4"], validate_default=True)
    unit: UnitNumber | Text = Field("", description="number or name", examples=[7], validate_default=True)
    task: str = Field(tasks.DEFAULT_TASK, json_schema_extra={"enum": list(tasks.TASKS)})
    dataset: Text = Field("", description="its key; empty for that of the settings")
    surroundings: Literal["", "dim", "dark", "weighted"] = Field(
        "", description="look of masked images outside the bright region; empty for that of the settings"
    )
    exemplars: int = Field(0, ge=0, le=MAX_EXEMPLARS, description="that the run works with; 0 for all that there are")
    toolset: Text = forms.COMMAND_DEFAULTS["toolset"]
    backbone: Text = forms.COMMAND_DEFAULTS["backbone"]
    backbone_model: Text = ""
    limits: RunLimitsIn = RunLimitsIn()
    seed: Whole = 0
    reflections: int = Field(
        0, ge=0, le=MAX_REFLECTIONS, description="how often a label that fails its check goes back to the agent"
    )
    ablation: bool = Field(
        False, description="whether the agent's programs may ablate the unit in its model, by system.ablate"
    )
    unpriced: bool = Field(
        False, description="run though no price of the model is known: the limit of the cost is then left out"
    )

    @field_validator("model", "layer", "unit")
    @classmethod
    def _need_place(cls, given: int | str, asked: ValidationInfo) -> int | str:
        """Raise ValueError if neither this nor a circuit is named."""
        if given == "" and asked.data.get("circuit") is None:
            raise ValueError(f"Name the {asked.field_name}, or a circuit.")
        return given


@router.post("/runs", response={201: RunOut}, summary="Create a run")
def create_run(request: HttpRequest, query: RunIn, response: HttpResponse) -> Status[dict[str, Any]]:
    """Checked as on the page New run. Sent again with the same Idempotency-Key, it makes no other run."""
    owner = authorize(request, Role.RESEARCHER, TokenScope.RUN)
    # The form has the limits among its fields, the API in an object of their own.
    values = {**query.model_dump(exclude={"limits"}), **query.limits.model_dump()}
    return create_run_row(request, response, lambda: actions.ask(Actor.behind(request, owner), forms.QueryForm(values)))


def create_run_row(request: HttpRequest, response: HttpResponse, make: Callable[[], Run]) -> Status[dict[str, Any]]:
    """Create a run; return it with its address. Errors name a limit as the body does."""

    def make_once() -> tuple[RunOut, str]:
        try:
            run = make()
        except InvalidFields as error:
            # Errors name a limit as the request's body does.
            named = {
                f"limits.{name}" if name in DEFAULT_LIMITS else name: messages
                for name, messages in error.fields.items()
            }
            raise InvalidFields(str(error), named) from error
        return read_out(run.pk, run.owner), reverse("api:read_run", args=[run.pk])

    return Status(201, answer_once(request, response, access.require(request), make_once))


@router.post("/runs/{pk}/again", response={201: RunOut}, summary="Duplicate a run")
def ask_again(request: HttpRequest, pk: Id, response: HttpResponse) -> Status[dict[str, Any]]:
    """A new run with the query of this one, checked anew."""
    owner = authorize(request, Role.RESEARCHER, TokenScope.RUN)
    run = find(Run.objects.all(), pk=pk)
    return create_run_row(request, response, lambda: actions.ask_again(Actor.behind(request, owner), run))
