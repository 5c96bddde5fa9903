"""Compare agents on the same units: scores of their labels where both labelled a unit.

Comparisons are paired by unit. Several scores of one agent for a unit are averaged first.
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


def compare_agents(runs: QuerySet[Run], measure: str, names: Names) -> list[AgentPair]:
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


def _read_scores(runs: QuerySet[Run], measure: str, names: Names) -> Mapping[_Agent, Mapping[_Place, float]]:
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
    """Return the mean with Student's 95 % interval; without one for fewer than `MIN_UNITS` values."""
    mean, n = fmean(values), len(values)
    if n < MIN_UNITS:
        return Estimate(mean, n=n, why=f"{n} units in common are too few for an interval: it takes {MIN_UNITS}")
    half = _find_quantile(n - 1) * stdev(values) / math.sqrt(n)
    return Estimate(mean, mean - half, mean + half, n)


def _find_quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t for at least 4 degrees of freedom, to three digits.

    Uses the Cornish-Fisher expansion (Abramowitz and Stegun, 26.7.5).
    """
    z = NormalDist().inv_cdf(0.975)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, 1))
