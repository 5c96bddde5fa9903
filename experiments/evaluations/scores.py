"""Scores of labels in their checks: the distribution of r and AUPRC by layer, model or backbone.

The database counts in one query, with a row per group and bin, however many runs there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import Count, F, IntegerField, Max, Min, QuerySet, Sum, Value
from django.db.models.functions import Cast, Floor, Least
from django.urls import reverse

from experiments.core import parts
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display.plots import CountedGroup, Plot, draw_distributions
from experiments.models import Run

WIDTH = 0.05
"""Width of a bin."""
MAX_GROUPS = 12
"""Maximum number of groups drawn, those with the most runs."""
MEASURES = {
    "r": ("label_check__pearson", "r on unseen images"),
    "auprc": ("label_check__auprc", "AUPRC on unseen images"),
}
GROUPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "layer": ("Layer", ("model", "layer")),
    "model": ("Model", ("model",)),
    "backbone": ("Agent", ("backbone", "backbone_model")),
}
"""Key in the address -> its name, and the columns of a run that define a group."""


@dataclass(frozen=True)
class ScoredGroup:
    """Runs of one group whose labels were measured."""

    values: tuple[str, ...]
    n: int
    mean: float
    low: float
    high: float
    counts: Mapping[int, int]
    """Bin -> number of runs."""


def find_scores(runs: QuerySet[Run], by: str, measure: str, names: SystemNameMasker) -> list[ScoredGroup]:
    """Return the groups, the largest first. Runs whose system the viewer may not know are left out."""
    column, keys = F(MEASURES[measure][0]), GROUPS[by][1]
    # 1. The bin of each run, computed by the database.
    known = find_measured(runs, measure, names)
    last = round(1 / WIDTH) - 1  # 1 belongs to the last bin
    # The small addend keeps rounding errors from moving 0.15 into the bin below
    place = Least(Cast(Floor(column / Value(WIDTH) + Value(1e-9)), IntegerField()), Value(last))
    rows = known.order_by().annotate(bin=place).values_list(*keys, "bin")
    # 2. A row for each group and bin.
    parts: dict[tuple[str, ...], list[tuple[int, int, float, float, float]]] = defaultdict(list)
    # Sums rather than means: groups are put together from their bins
    for *values, found, count, total, low, high in rows.annotate(Count("pk"), Sum(column), Min(column), Max(column)):
        parts[tuple(values)].append((found, count, total, low, high))
    groups = [_sum_up(values, some) for values, some in parts.items()]
    return sorted(groups, key=lambda each: (-each.n, each.values))


def find_measured(runs: QuerySet[Run], measure: str, names: SystemNameMasker) -> QuerySet[Run]:
    """Return the runs with this measure whose system the viewer may know."""
    known = visible_to(runs).filter(**{f"{MEASURES[measure][0]}__isnull": False})
    return known.exclude(names.are_hidden_at("model", "layer", "unit"))


def _sum_up(values: tuple[str, ...], parts: Sequence[tuple[int, int, float, float, float]]) -> ScoredGroup:
    n = sum(count for _, count, *_ in parts)
    mean = sum(part[2] for part in parts) / n
    counts = {found: count for found, count, *_ in parts}
    return ScoredGroup(values, n, mean, min(part[3] for part in parts), max(part[4] for part in parts), counts)


def draw_scores(groups: Sequence[ScoredGroup], by: str, measure: str, chosen: Mapping[str, str]) -> Plot | None:
    """Draw the largest groups. A bar links to the runs of its group within the filters `chosen`."""
    noun, keys = GROUPS[by]
    rows = [
        CountedGroup(
            name_group(by, each.values), each.counts, each.mean, each.low, each.high, _link(keys, each, chosen)
        )
        for each in groups[:MAX_GROUPS]
    ]
    words = MEASURES[measure][1]
    return draw_distributions(rows, WIDTH, f"{words}, by {noun.lower()}", words)


def name_group(by: str, values: Sequence[str]) -> str:
    if by != "backbone":
        return " / ".join(values)
    backbone, model = values
    return model or parts.label_backbone(backbone)


def _link(keys: Sequence[str], group: ScoredGroup, chosen: Mapping[str, str]) -> str:
    given = dict(zip(keys, group.values, strict=True))
    if "backbone" in given:  # The list has one filter for both
        given = {"backbone": given["backbone_model"] or given["backbone"]}
    return f"{reverse('runs')}?{urlencode({**chosen, **given, 'sort': 'check'})}"
