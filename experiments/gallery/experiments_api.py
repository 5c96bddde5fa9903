"""Experiments: the programs that ran, what they printed, the calls they made."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpRequest
from ninja import Field, Query, Router, Schema

from experiments.api.cursors import Page, Paging, page
from experiments.api.entry import allow
from experiments.api.fields import Id, Number, RowNumber, Words
from experiments.api.problems import Refusal
from experiments.core.system_names import Names
from experiments.models import Experiment

router = Router(tags=["Experiments"])


class ExperimentOut(Schema):
    """One program, and what came of it."""

    id: int
    run: int
    number: int
    round: int
    status: str
    code: str
    output: str
    error: str
    seconds: float
    tool_seconds: float


class ExperimentDetail(ExperimentOut):
    calls: list[dict[str, Any]] = Field(description="of the tools, with arguments, seeds and seconds")


class ExperimentFilters(Schema):
    run: RowNumber | None = None
    status: Words | None = None
    model: Words | None = None
    layer: Words | None = None
    order: Literal["newest", "oldest"] = "newest"


SAME = ["id", "number", "round", "status", "code", "output", "error", "seconds", "tool_seconds"]


def experiment_out(row: Experiment) -> ExperimentOut:
    return ExperimentOut(run=row.run_id, **{name: getattr(row, name) for name in SAME})


@router.get("/experiments", response=Page[ExperimentOut], summary="List experiments")
def list_experiments(
    request: HttpRequest, filters: Query[ExperimentFilters], paging: Query[Paging]
) -> Page[ExperimentOut]:
    """Of all runs or one, the newest first."""
    names = Names(allow(request))
    fields = {"run": "run_id", "status": "status", "model": "run__model", "layer": "run__layer"}
    given = filters.model_dump(exclude_none=True)
    rows = Experiment.objects.filter(**{field: given[name] for name, field in fields.items() if name in given})
    if given.keys() & {"model", "layer"}:
        rows = rows.exclude(names.are_hidden("run__"))
    order = ["-pk"] if filters.order == "newest" else ["pk"]
    return page(request, rows.defer("state", "calls"), order, paging, experiment_out)


@router.get("/runs/{pk}/experiments/{number}", response=ExperimentDetail, summary="Read an experiment")
def read_experiment(request: HttpRequest, pk: Id, number: Number) -> ExperimentDetail:
    """By its number in the run, with the calls it made."""
    allow(request)
    row = Experiment.objects.filter(run_id=pk, number=number).defer("state").first()
    if row is None:
        raise Refusal("missing", f"Run {pk} has no experiment {number}, or there is no such run.")
    return ExperimentDetail(calls=row.calls, **experiment_out(row).model_dump())
