"""Compare agents on the same units: scores of their labels where both labelled a unit.

Comparisons are paired by unit. Several scores of one agent for a unit are averaged first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from django.db.models import Avg, QuerySet

from experiments.core.system_names import SystemNameMasker
from experiments.display.effect_sizes import bound_mean
from experiments.display.plots import IntervalRow, Plot, draw_intervals
from experiments.evaluations.scores import MEASURES, find_measured, name_group
from experiments.models import Run
from workers.record.estimates import Estimate

MAX_AGENTS = 6
"""Maximum number of compared agents, those with the most labelled units."""
MIN_UNITS = 5
"""Minimum number of common units for an interval."""
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
    """First minus second, mean over units with Student's interval. n counts units."""
    first_higher: int
    """Number of units for which the first agent's label scored higher."""
    second_higher: int

    @property
    def name(self) -> str:
        return f"{self.first} less {self.second}"


def compare_agents(runs: QuerySet[Run], measure: str, names: SystemNameMasker) -> list[AgentPair]:
    """Compare every two agents with common units, most common units first."""
    scores = _read_scores(runs, measure, names)
    # The number of pairs grows with the square of the agents
    agents = [agent for agent, _ in Counter({each: len(of) for each, of in scores.items()}).most_common(MAX_AGENTS)]
    pairs = [_compare(one, other, scores) for one, other in combinations(agents, 2)]
    return sorted((pair for pair in pairs if pair), key=lambda pair: (-pair.difference.n, pair.name))


def draw_agents(pairs: Sequence[AgentPair], measure: str) -> Plot | None:
    """Draw the differences on one axis with a line at 0."""
    rows = [
        IntervalRow(pair.name, value, pair.difference.low, pair.difference.high, pair.difference.n)
        for pair in pairs
        if (value := pair.difference.value) is not None
    ]
    words = f"difference in {MEASURES[measure][1]}"
    return draw_intervals(rows, f"{words}, by pair of agents", words, level=0.0, sorts=False, counts=True)


def _read_scores(runs: QuerySet[Run], measure: str, names: SystemNameMasker) -> Mapping[_Agent, Mapping[_Place, float]]:
    """Return the mean score of labels, by agent and unit."""
    keys = ("backbone", "backbone_model", "model", "layer", "unit")
    rows = find_measured(runs, measure, names).order_by().values_list(*keys)
    found: dict[_Agent, dict[_Place, float]] = defaultdict(dict)
    for backbone, backbone_model, model, layer, unit, mean in rows.annotate(mean=Avg(MEASURES[measure][0])):
        found[backbone, backbone_model][model, layer, unit] = mean
    return found


def _compare(one: _Agent, other: _Agent, scores: Mapping[_Agent, Mapping[_Place, float]]) -> AgentPair | None:
    """Compare two agents; None without common units."""
    first, second = scores[one], scores[other]
    # Sorted, so that sums of floats do not depend on the order of a set.
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
    """Return the mean with Student's 95 % interval, or without one for fewer than `MIN_UNITS` values."""
    mean, n, ends = fmean(values), len(values), bound_mean(values)
    if n < MIN_UNITS or ends is None:
        return Estimate(mean, n=n, why=f"{n} units in common are too few for an interval: it takes {MIN_UNITS}")
    return Estimate(mean, *ends, n)
