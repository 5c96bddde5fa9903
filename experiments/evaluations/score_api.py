"""API of score distributions, and of agents on the same units."""

from __future__ import annotations

from typing import Literal

from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from ninja import Field, Query, Schema

from experiments.api.auth import authorize
from experiments.core.errors import InvalidInput
from experiments.core.system_names import SystemNameMasker
from experiments.evaluations import same_units, scores
from experiments.evaluations.api import router
from experiments.models import Run
from experiments.runs.lists import runs_from


class PairsQuery(Schema):
    measure: Literal["r", "auprc"] = "r"
    filters: str = Field(
        "", max_length=2_000, description="as in the address of the Runs page: model=toybox&task=describe"
    )


class ScoresQuery(PairsQuery):
    by: Literal["layer", "model", "backbone"] = "layer"


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


class AgentPairOut(Schema):
    """Two agents over the units that both labelled. Several runs of one agent on a unit are averaged first."""

    first: str
    second: str
    units: int = Field(description="that both labelled")
    first_mean: float
    second_mean: float
    difference: float = Field(description="of the first less the second, mean over units")
    low: float | None = Field(description="of Student's 95 % interval; null with fewer than 5 units")
    high: float | None
    first_higher: int = Field(description="units on which the first one's label scored higher")
    second_higher: int


@router.get("/scores", response=list[ScoredGroupOut], summary="Read the distribution of scores")
def read_scores(request: HttpRequest, wanted: Query[ScoresQuery]) -> list[ScoredGroupOut]:
    """Scores of labels on images that their author never saw, by group, largest group first."""
    names = SystemNameMasker(authorize(request))
    groups = scores.find_scores(_find_runs(wanted.filters, names), wanted.by, wanted.measure, names)
    return [_build_group_out(wanted.by, each) for each in groups]


@router.get("/scores/agents", response=list[AgentPairOut], summary="Compare agents on the same units")
def compare_agents(request: HttpRequest, wanted: Query[PairsQuery]) -> list[AgentPairOut]:
    """Every two of the six agents with the most labelled units, most common units first."""
    names = SystemNameMasker(authorize(request))
    pairs = same_units.compare_agents(_find_runs(wanted.filters, names), wanted.measure, names)
    return [_shape_pair(each) for each in pairs]


def _find_runs(filters: str, names: SystemNameMasker) -> QuerySet[Run]:
    """Return the runs. Raises InvalidInput for an invalid filter."""
    found = runs_from(QueryDict(filters).dict(), names.viewer, names)
    if found.problems:
        raise InvalidInput(" ".join(found.problems.values()), "filters")
    return found.runs


def _shape_pair(pair: same_units.AgentPair) -> AgentPairOut:
    return AgentPairOut(
        first=pair.first,
        second=pair.second,
        units=pair.difference.n,
        first_mean=pair.first_mean,
        second_mean=pair.second_mean,
        difference=pair.difference.value or 0.0,
        low=pair.difference.low,
        high=pair.difference.high,
        first_higher=pair.first_higher,
        second_higher=pair.second_higher,
    )


def _build_group_out(by: str, group: scores.ScoredGroup) -> ScoredGroupOut:
    width = scores.WIDTH
    bins = [
        BinOut(low=round(place * width, 6), high=round((place + 1) * width, 6), runs=count)
        for place, count in sorted(group.counts.items())
    ]
    name = scores.name_group(by, group.values)
    return ScoredGroupOut(name=name, n=group.n, mean=group.mean, low=group.low, high=group.high, bins=bins)
