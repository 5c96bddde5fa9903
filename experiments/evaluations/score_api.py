"""The distribution of scores, for scripts."""

from __future__ import annotations

from typing import Literal

from django.http import HttpRequest, QueryDict
from ninja import Field, Query, Schema

from experiments.api.entry import allow
from experiments.core.errors import InvalidInput
from experiments.core.system_names import Names
from experiments.evaluations import scores
from experiments.evaluations.api import router
from experiments.runs.lists import runs_from


class ScoresQuery(Schema):
    by: Literal["layer", "model", "backbone"] = "layer"
    measure: Literal["r", "auprc"] = "r"
    filters: str = Field(
        "", max_length=2_000, description="as in the address of the Runs page: model=toybox&task=describe"
    )


class BinOut(Schema):
    low: float
    high: float
    runs: int


class ScoredGroupOut(Schema):
    name: str
    n: int = Field(description="runs whose label was measured")
    mean: float
    low: float
    high: float
    bins: list[BinOut]


@router.get("/scores", response=list[ScoredGroupOut], summary="Read the distribution of scores")
def read_scores(request: HttpRequest, wanted: Query[ScoresQuery]) -> list[ScoredGroupOut]:
    """How the labels of runs did on images that their author never saw, by group; the largest group first."""
    user = allow(request)
    names = Names(user)
    found = runs_from(_read_filters(wanted.filters), user, names)
    if found.problems:
        raise InvalidInput(" ".join(found.problems.values()), "filters")
    groups = scores.find_scores(found.runs, wanted.by, wanted.measure, names)
    return [_out(wanted.by, each) for each in groups]


def _read_filters(text: str) -> dict[str, str]:
    return QueryDict(text).dict()


def _out(by: str, group: scores.ScoredGroup) -> ScoredGroupOut:
    width = scores.WIDTH
    bins = [
        BinOut(low=round(place * width, 6), high=round((place + 1) * width, 6), runs=count)
        for place, count in sorted(group.counts.items())
    ]
    name = scores.name_group(by, group.values)
    return ScoredGroupOut(name=name, n=group.n, mean=group.mean, low=group.low, high=group.high, bins=bins)
