"""What is known of a circuit, in the API: its runs, whether labels explain its members, its exemplars."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest
from ninja import Field, Schema, Status
from pydantic import BeforeValidator

from experiments.api.auth import authorize
from experiments.api.fields import NO_NUL, Body, Id, RowOut, find
from experiments.circuits import actions, lists, runs
from experiments.circuits.api import router
from experiments.core.actors import Actor
from experiments.models import Run, TokenScope


class CircuitRunOut(Schema):
    """A run on the circuit; read the run for its details."""

    id: int
    status: str
    question: str
    labels: list[str]
    description: str
    check: int | None = Field(description="key of the check of its labels")
    pearson: float | None = Field(description="r of that check")
    same_members: bool = Field(description="false if it was asked when the circuit had other members")


class StatesOut(RowOut):
    """Shares of images; null if there are none."""

    images: int
    all_on: float | None
    one_off: float | None
    all_off: float | None
    otherwise: float | None


class MemberStatesOut(RowOut):
    model: str
    layer: str
    unit: int
    off_with: float | None = Field(description="share of the images that the label describes on which it alone is off")
    off_without: float | None = Field(description="the same of the images that the label does not describe")
    pearson_without: float | None = Field(description="r of the label and the circuit without this member")


class ComparedOut(RowOut):
    """The members on the images of a label check."""

    check: int = Field(validation_alias="check.pk")
    label: str = Field(validation_alias="check.text")
    pearson: float | None = Field(validation_alias="findings.pearson")
    described: StatesOut = Field(validation_alias="findings.described")
    others: StatesOut = Field(validation_alias="findings.others")
    members: Annotated[list[MemberStatesOut], BeforeValidator(lambda members: [each.finding for each in members])]


class CircuitExemplarOut(RowOut):
    rank: int
    image: str | None = Field(validation_alias="image_id")
    masked: str | None = Field(validation_alias="masked_id")
    activation: float


class CircuitStudyOut(Schema):
    """`number` is the unit of the layer "circuit" for these members."""

    number: int
    runs: list[CircuitRunOut] = Field(description="the newest")
    run_count: int
    compared: list[ComparedOut] = Field(description="by label, the newest check first")
    dataset: str | None = Field(description="of the exemplars; null if none were requested")
    problem: str = Field(description="why exemplars could not be found")
    exemplars: list[CircuitExemplarOut]


class CircuitOver(Body):
    dataset: Annotated[str, Field(max_length=500, pattern=NO_NUL, description="its key", examples=["toybox"])]


def _run_out(run: Run, number: int) -> CircuitRunOut:
    check = run.label_check
    return CircuitRunOut(
        id=run.pk,
        status=run.status,
        question=run.question,
        labels=run.labels,
        description=run.statement,
        check=check.pk if check else None,
        pearson=check.pearson if check else None,
        same_members=run.unit == number,
    )


@router.get("/circuits/{pk}/study", response=CircuitStudyOut, summary="What is known of a circuit")
def read_circuit_study(request: HttpRequest, pk: Id) -> CircuitStudyOut:
    """Read its runs, what labels explain of its members, and the images with its highest activation."""
    authorize(request)
    row = find(lists.list_circuits(), pk=pk)
    number = runs.number_of(row)
    listed, unit = runs.list_runs(row.network, number, row), runs.find_studied(row.network, number)
    shown = runs.read_exemplars(unit)
    return CircuitStudyOut(
        number=number,
        runs=[_run_out(run, number) for run in listed[: runs.RUNS]],
        run_count=listed.count(),
        compared=[ComparedOut.from_orm(each) for each in runs.list_checked(unit)],
        dataset=shown.profile.dataset.key if shown else None,
        problem=shown.profile.problem if shown else "",
        exemplars=[CircuitExemplarOut.from_orm(each) for each in shown.images] if shown else [],
    )


@router.post("/circuits/{pk}/exemplars", response={202: None}, summary="Ask for the exemplars of a circuit")
def ask_for_circuit_exemplars(request: HttpRequest, pk: Id, over: CircuitOver) -> Status[None]:
    """Ask a worker to find the images of a dataset with its highest activation. Asking again is harmless."""
    actor = Actor.behind(request, authorize(request, actions.CHANGES, TokenScope.RUN))
    runs.ask_for_exemplars(actor, find(lists.list_circuits(), pk=pk), over.dataset)
    return Status(202, None)
