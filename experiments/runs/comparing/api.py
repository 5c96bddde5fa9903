"""Several runs side by side, as the page Compare shows them."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest
from ninja import Field, Query, Router, Schema

from experiments.api.auth import authorize
from experiments.api.fields import RowNumber, RowOut
from experiments.api.problems import Refusal
from experiments.core.errors import InvalidInput
from experiments.core.params import MAX_COUNT
from experiments.core.visibility import visible_to
from experiments.display.label_checks import fetch_checks
from experiments.models import Run
from experiments.runs.comparing import comparison

router = Router(tags=["Runs"])

Round = Annotated[int, Field(ge=1, le=MAX_COUNT)]


class ComparisonQuery(Schema):
    """Which runs, against which, from which round on."""

    run: list[RowNumber] = Field(
        min_length=comparison.MIN_RUNS, max_length=comparison.MAX_RUNS, description="two to six of them"
    )
    base: RowNumber | None = Field(None, description="what figures are measured against; else the first")
    first: Round = Field(1, description="the first round wanted")


class CellOut(RowOut):
    run: int = Field(validation_alias="run.pk")
    text: str = Field(validation_alias="in_words")
    difference: str = Field(description="from the baseline, with its sign; empty where there is none")


class LineOut(RowOut):
    name: str
    same: bool
    cells: list[CellOut]


class ComparedImageOut(Schema):
    image: str
    activation: float


class ComparedRoundOut(Schema):
    """What one run did in a round."""

    run: int
    headline: str
    hypotheses: list[str]
    programs: list[str]
    images: list[ComparedImageOut] = Field(description="the strongest that were logged")
    logged: int


class RoundOut(Schema):
    number: int
    same: list[str] = Field(description="what all runs have alike")
    runs: list[ComparedRoundOut]


class ComparisonOut(Schema):
    runs: list[int]
    base: int
    lines: list[LineOut]
    rounds: list[RoundOut]
    next: int | None = Field(description="the `first` of the rounds that follow; null after the last")


@router.get("/comparisons", response=ComparisonOut, summary="Compare runs")
def compare_runs(request: HttpRequest, wanted: Query[ComparisonQuery]) -> ComparisonOut:
    """What was asked and what came of it line by line, and eight rounds."""
    user = authorize(request)
    # The runs in this order. Raises Refusal if one is not there, or comes twice.
    if len(set(wanted.run)) < len(wanted.run):
        raise InvalidInput("A run is named twice. Name each once.")
    rows = visible_to(Run.objects.select_related("owner")).prefetch_related(fetch_checks()).in_bulk(wanted.run)
    absent = [str(number) for number in wanted.run if number not in rows]
    if absent:
        raise Refusal("missing", f"There is no run {', '.join(absent)}.")
    runs = [rows[number] for number in wanted.run]
    base = next((run for run in runs if run.pk == wanted.base), None) if wanted.base else runs[0]
    if base is None:
        raise InvalidInput(f"The baseline {wanted.base} is not among these runs.")
    last = wanted.first + comparison.ROUNDS - 1
    found = comparison.rounds(runs, comparison.scale_of(runs), wanted.first, last, only_differences=False)
    return ComparisonOut(
        runs=[run.pk for run in runs],
        base=base.pk,
        lines=[LineOut.from_orm(line) for line in comparison.lines(runs, base, user)],
        rounds=[_round_out(each) for each in found],
        # The longest run decides; shorter ones have empty rounds.
        next=last + 1 if last < max(run.rounds for run in runs) else None,
    )


def _round_out(found: comparison.Round) -> RoundOut:
    runs = [
        ComparedRoundOut(
            run=one.run.pk,
            headline=one.headline,
            hypotheses=[each.text for each in one.hypotheses],
            programs=[code for code, _ in one.programs],
            images=[ComparedImageOut(image=image, activation=activation) for image, activation in one.images],
            logged=one.logged,
        )
        for one in found.parts[0].rounds
    ]
    return RoundOut(number=found.number, same=[part.name for part in found.parts if part.same], runs=runs)
