"""Agents on the same units: how the labels of one did beside those of another where both labelled a unit.

A unit is the case. Where an agent was asked about it several times, its scores are averaged first.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist, fmean, stdev

from django.db.models import Avg, QuerySet

from experiments.core.system_names import Names
from experiments.display.plots import IntervalRow, Plot, draw_intervals
from experiments.evaluations.scores import MEASURES, find_measured, name_group
from experiments.models import Run
from workers.record.estimates import Estimate

MAX_AGENTS = 6
"""Agents that are compared: those that labelled the most units."""
MIN_UNITS = 5
"""Units in common below which a difference has no interval."""
_Agent = tuple[str, str]
_Place = tuple[str, str, int]


@dataclass(frozen=True)
class AgentPair:
    """Two agents over the units that both labelled."""

    first: str
    second: str
    first_mean: float
    second_mean: float
    difference: Estimate
    """Of the first less the second, mean over units, with Student's interval; n counts units."""
    first_higher: int
    """Units on which the first one's label scored higher."""
    second_higher: int

    @property
    def name(self) -> str:
        return f"{self.first} less {self.second}"


def compare_agents(runs: QuerySet[Run], measure: str, names: Names) -> list[AgentPair]:
    """Every two agents that labelled the same units, those with the most units in common first."""
    scores = _read_scores(runs, measure, names)
    agents = [agent for agent, _ in Counter({each: len(of) for each, of in scores.items()}).most_common(MAX_AGENTS)]
    pairs = [_compare(one, other, scores) for one, other in combinations(agents, 2)]
    return sorted((pair for pair in pairs if pair), key=lambda pair: (-pair.difference.n, pair.name))


def draw_agents(pairs: Sequence[AgentPair], measure: str) -> Plot | None:
    """The differences on one axis, each beside 0."""
    rows = [
        IntervalRow(pair.name, value, pair.difference.low, pair.difference.high, pair.difference.n)
        for pair in pairs
        if (value := pair.difference.value) is not None
    ]
    words = f"difference in {MEASURES[measure][1]}"
    return draw_intervals(rows, f"{words}, by pair of agents", words, level=0.0, sorts=False, counts=True)


def _read_scores(runs: QuerySet[Run], measure: str, names: Names) -> Mapping[_Agent, Mapping[_Place, float]]:
    """By agent, and by unit, the mean score of its labels."""
    keys = ("backbone", "backbone_model", "model", "layer", "unit")
    rows = find_measured(runs, measure, names).order_by().values_list(*keys)
    found: dict[_Agent, dict[_Place, float]] = defaultdict(dict)
    for backbone, backbone_model, model, layer, unit, mean in rows.annotate(mean=Avg(MEASURES[measure][0])):
        found[backbone, backbone_model][model, layer, unit] = mean
    return found


def _compare(one: _Agent, other: _Agent, scores: Mapping[_Agent, Mapping[_Place, float]]) -> AgentPair | None:
    """None where the two have no unit in common."""
    first, second = scores[one], scores[other]
    shared = sorted(first.keys() & second.keys())
    if not shared:
        return None
    differences = [first[place] - second[place] for place in shared]
    return AgentPair(
        name_group("backbone", one),
        name_group("backbone", other),
        fmean(first[place] for place in shared),
        fmean(second[place] for place in shared),
        _estimate_mean(differences),
        sum(each > 0 for each in differences),
        sum(each < 0 for each in differences),
    )


def _estimate_mean(values: Sequence[float]) -> Estimate:
    """The mean with Student's 95 % interval; without one of fewer than `MIN_UNITS` values."""
    mean, n = fmean(values), len(values)
    if n < MIN_UNITS:
        return Estimate(mean, n=n, why=f"{n} units in common are too few for an interval: it takes {MIN_UNITS}")
    half = _find_quantile(n - 1) * stdev(values) / math.sqrt(n)
    return Estimate(mean, mean - half, mean + half, n)


def _find_quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's t with 4 degrees of freedom or more, to three digits.

    By the expansion of Cornish and Fisher (Abramowitz and Stegun, 26.7.5).
    """
    z = NormalDist().inv_cdf(0.975)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, 1))
