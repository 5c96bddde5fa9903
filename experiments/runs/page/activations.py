"""Activations over rounds: the images counted by round and origin, as a plot and as a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Max, Min, Q, QuerySet, Sum

from experiments.display.axes import Plot
from experiments.display.rounds import Step, steps
from experiments.display.window import number
from experiments.models import Observation, Run
from experiments.runs.page import dots
from workers.record.origins import Origin


@dataclass(frozen=True)
class Group:
    """The images of one origin in one round, as the database counts them."""

    round: int
    origin: str
    count: int
    low: float
    high: float
    total: float
    reached: int


@dataclass
class Row:
    """One step: a row of the table, a column of the plot. `best` is that of the agent's own images so far."""

    step: Step
    counts: dict[str, int] = field(default_factory=dict)
    total: float = 0.0
    strongest: float = -math.inf
    reached: int = 0
    best: float | None = None

    @property
    def count(self) -> int:
        return sum(self.counts.values())

    @property
    def mean(self) -> float:
        return self.total / self.count

    @property
    def origins(self) -> str:
        """How many images of each."""
        return ", ".join(f"{count} {origin}" for origin, count in self.counts.items())


def read(run: Run, params: Mapping[str, str]) -> dict[str, Any]:
    """All rounds, or those from `from` to `to`."""
    first, last = number(params, "from") or 1, number(params, "to") or run.rounds
    everything = run.observations.order_by()
    chosen = everything.filter(experiment__round__range=(first, last))
    groups = counted(chosen, run.threshold)
    context = {"first": first, "last": last, "part": (first, last) != (1, run.rounds), "any": bool(groups)}
    if not groups:
        return context
    before = everything.filter(experiment__round__lt=first).exclude(origin="exemplar")
    rows = table(groups, before.aggregate(best=Max("activation"))["best"])
    plot = Plot.over([str(row.step.first) for row in rows], heights(groups, run.threshold))
    return context | {
        "rows": rows,
        "count": sum(row.count for row in rows),
        "reached": sum(row.reached for row in rows),
        "origins": [(key, words) for key, words in Origin.choices() if any(group.origin == key for group in groups)],
        **drawn(run, plot, chosen, groups, rows),
    }


def drawn(
    run: Run, plot: Plot, chosen: QuerySet[Observation], groups: Sequence[Group], rows: Sequence[Row]
) -> dict[str, Any]:
    """What stands in the plot."""
    single = sum(row.count for row in rows) <= dots.MOST
    columns = [row.step for row in rows]
    return {
        "plot": plot,
        "ticks": [(plot.y(value), value) for value in plot.values],
        "dots": dots.single(plot, chosen, columns) if single else [],
        "marks": [] if single else dots.marks(plot, groups, columns),
        "best": plot.stairs([row.best for row in rows]),
        "threshold_y": None if run.threshold is None else plot.y(run.threshold),
    }


def counted(chosen: QuerySet[Observation], threshold: float | None) -> list[Group]:
    """By round and origin; `reached` counts those at the threshold or above."""
    over = Q(activation__gte=threshold) if threshold is not None else Q(pk__in=[])
    figures = chosen.values_list("experiment__round", "origin").annotate(
        Count("pk"), Min("activation"), Max("activation"), Sum("activation"), over=Count("pk", filter=over)
    )
    return [Group(*each) for each in figures.order_by("experiment__round", "origin")]


def heights(groups: Iterable[Group], threshold: float | None) -> list[float]:
    ends = [value for group in groups for value in (group.low, group.high)]
    return ends if threshold is None else [*ends, threshold]


def table(groups: Sequence[Group], best: float | None) -> list[Row]:
    """A row for each step, in order. `best` is what the agent's own images had reached before."""
    step_of = steps(group.round for group in groups)
    rows: dict[Step, Row] = {}
    for group in groups:
        row = rows.setdefault(step_of[group.round], Row(step_of[group.round]))
        row.counts[group.origin] = row.counts.get(group.origin, 0) + group.count
        row.total += group.total
        row.reached += group.reached
        row.strongest = max(row.strongest, group.high)
        if group.origin != "exemplar":
            best = group.high if best is None else max(best, group.high)
        row.best = best
    return list(rows.values())
