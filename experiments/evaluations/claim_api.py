"""API of AIM's claims next to our figures."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Field

from experiments.api.auth import authorize
from experiments.api.fields import RowOut
from experiments.evaluations import claims
from experiments.evaluations.api import router


class OwnFigureOut(RowOut):
    """A figure measured here, in an evaluation or a pairwise trial; the other one is null."""

    evaluation: int | None
    trial: int | None
    key: str = Field(validation_alias="figure.key")
    label: str = Field(validation_alias="figure.label")
    value: float | None = Field(validation_alias="figure.value")
    low: float | None = Field(validation_alias="figure.low")
    high: float | None = Field(validation_alias="figure.high")
    n: int = Field(validation_alias="figure.n")


class ClaimOut(RowOut):
    """A claim of the paper. `claimed` is null if it gives no number."""

    key: str
    words: str
    claimed: float | None
    ours: list[OwnFigureOut] = Field(
        validation_alias="own", description="from the newest evaluation of each kind; empty if nothing was measured"
    )
    note: str = Field(description="how the two compare, and how to measure what is missing")


@router.get("/claims", response=list[ClaimOut], summary="Read AIM's claims beside ours")
def read_claims(request: HttpRequest) -> list[ClaimOut]:
    """Figures that have not been measured are missing, which is no evidence against a claim."""
    authorize(request)
    return [ClaimOut.from_orm(row) for row in claims.set_beside(claims.find_newest())]
