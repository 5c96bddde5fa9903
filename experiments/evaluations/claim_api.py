"""API of AIM's claims next to our figures."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Field, Schema

from experiments.api.auth import authorize
from experiments.evaluations import claims
from experiments.evaluations.api import router


class OwnFigureOut(Schema):
    """A figure measured here, in an evaluation or a pairwise trial; the other one is null."""

    evaluation: int | None
    trial: int | None
    key: str
    label: str
    value: float | None
    low: float | None
    high: float | None
    n: int


class ClaimOut(Schema):
    """A claim of the paper. `claimed` is null if it gives no number."""

    key: str
    words: str
    claimed: float | None
    ours: list[OwnFigureOut] = Field(
        description="from the newest evaluation of each kind; empty if nothing was measured"
    )
    note: str = Field(description="how the two compare, and how to measure what is missing")


@router.get("/claims", response=list[ClaimOut], summary="Read AIM's claims beside ours")
def read_claims(request: HttpRequest) -> list[ClaimOut]:
    """Figures that have not been measured are missing, which is no evidence against a claim."""
    authorize(request)
    return [
        ClaimOut(
            key=row.key,
            words=row.words,
            claimed=row.claimed,
            ours=[_figure_out(each) for each in row.own],
            note=row.note,
        )
        for row in claims.set_beside(claims.find_newest())
    ]


def _figure_out(own: claims.OwnFigure) -> OwnFigureOut:
    found = own.figure
    return OwnFigureOut(
        evaluation=own.evaluation,
        trial=own.trial,
        key=found.key,
        label=found.label,
        value=found.value,
        low=found.low,
        high=found.high,
        n=found.n,
    )
