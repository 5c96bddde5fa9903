"""Activations over rounds: the images counted by round and origin, as a plot and as a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from django.db.models import Count, Max, Min, Q, QuerySet, Sum

from experiments.core.thumbnails import picture_of
from experiments.display.plots import Plot
from experiments.display.rounds import RoundRange, steps
from experiments.display.window import number
from experiments.models import Observation, Run
from workers.record.figures import figure
from workers.record.origins import Origin

MAX_DOTS = 1_200
"""Images up to which each has a dot; of more, those of one origin in one step have a mark."""


@dataclass(frozen=True)
class OriginCount:
    """The images of one origin in one round, as the database counts them."""

    round: int
    origin: str
    count: int
    low: float
    high: float
    total: float
    reached: int


@dataclass
class ActivationRow:
    """One step: a row of the table, a column of the plot. `best` is that of the agent's own images so far."""

    step: RoundRange
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
        """Return the number of images of each origin, in words."""
        return ", ".join(f"{count} {origin}" for origin, count in self.counts.items())


def read_activations(run: Run, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the images of all rounds, or of those from `from` to `to`, as a plot and a table."""
    first, last = number(params, "from") or 1, number(params, "to") or run.rounds
    everything = run.observations.order_by()
    chosen = everything.filter(experiment__round__range=(first, last))
    # 1. Counts by round and origin, from the database.
    groups = _count_origins(chosen, run.exemplar_mean)
    context = {"first": first, "last": last, "part": (first, last) != (1, run.rounds), "any": bool(groups)}
    if not groups:
        return context
    # The best so far counts the rounds before, too.
    before = everything.filter(experiment__round__lt=first).exclude(origin="exemplar")
    rows = table(groups, before.aggregate(best=Max("activation"))["best"])
    count = sum(row.count for row in rows)
    # The images over rounds, the best of the agent's own so far, the mean of the exemplars
    ends = [value for group in groups for value in (group.low, group.high)]
    if run.exemplar_mean is not None:
        ends.append(run.exemplar_mean)
    label = f"Activations of {count} image{'s' * (count != 1)} by round"
    plot = Plot.of_columns([str(row.step.first) for row in rows], ends, label)
    column = {n: place for place, row in enumerate(rows) for n in range(row.step.first, row.step.last + 1)}
    if count <= MAX_DOTS:
        add_dots(plot, chosen, column)
    else:
        _add_marks(plot, groups, rows, column)
    plot.draw_steps([row.best for row in rows])
    if run.exemplar_mean is not None:
        plot.add_level(run.exemplar_mean)
    return context | {
        "rows": rows,
        "count": count,
        "reached": sum(row.reached for row in rows),
        "origins": [(key, words) for key, words in Origin.choices() if any(group.origin == key for group in groups)],
        "plot": plot,
        "is_dots": count <= MAX_DOTS,
    }


def add_dots(plot: Plot, chosen: QuerySet[Observation], column: Mapping[int, int]) -> None:
    """Draw a dot for each image, in the column of its round."""
    values = chosen.order_by("experiment_id", "position").values_list(
        "experiment__round", "experiment__number", "activation", "title", "origin", "image_id"
    )
    for place, group in groupby(values, key=lambda each: column[each[0]]):
        plot.add_dots(
            place,
            (
                (
                    value,
                    origin,
                    f"{title or 'untitled'}: {figure(value)}, {origin}, round {number}",
                    f"?experiment={experiment}#experiment-{experiment}",
                    picture_of(image),
                )
                for number, experiment, value, title, origin, image in group
            ),
        )


def _add_marks(
    plot: Plot, groups: Sequence[OriginCount], rows: Sequence[ActivationRow], column: Mapping[int, int]
) -> None:
    """Draw a mark for each origin in each step, side by side, which leads to a plot of its rounds alone."""
    present = [origin for origin, _ in Origin.choices() if any(group.origin == origin for group in groups)]

    def key(group: OriginCount) -> tuple[int, str]:
        return column[group.round], group.origin

    for (place, origin), some in groupby(sorted(groups, key=key), key=key):
        together, step = list(some), rows[place].step
        low, high = min(group.low for group in together), max(group.high for group in together)
        words = f"Round {step}: {sum(group.count for group in together)} {origin}, {figure(low)} to {figure(high)}"
        middle = place + (present.index(origin) + 0.5) / len(present)
        plot.add_mark(middle, low, high, origin, words, f"?tab=activations&from={step.first}&to={step.last}")


def _count_origins(chosen: QuerySet[Observation], exemplar_mean: float | None) -> list[OriginCount]:
    """Count images by round and origin; `reached` counts those at the exemplar threshold or above."""
    # Without a threshold no image reaches it: a filter that matches nothing.
    over = Q(activation__gte=exemplar_mean) if exemplar_mean is not None else Q(pk__in=[])
    figures = chosen.values_list("experiment__round", "origin").annotate(
        Count("pk"), Min("activation"), Max("activation"), Sum("activation"), over=Count("pk", filter=over)
    )
    return [OriginCount(*each) for each in figures.order_by("experiment__round", "origin")]


def table(groups: Sequence[OriginCount], best: float | None) -> list[ActivationRow]:
    """Return a row for each step, in order. `best` is what the agent's own images had reached before."""
    step_of = steps(group.round for group in groups)
    rows: dict[RoundRange, ActivationRow] = {}
    for group in groups:
        row = rows.setdefault(step_of[group.round], ActivationRow(step_of[group.round]))
        row.counts[group.origin] = row.counts.get(group.origin, 0) + group.count
        # Sums rather than means, since a step joins several rounds.
        row.total += group.total
        row.reached += group.reached
        row.strongest = max(row.strongest, group.high)
        # Exemplars are given to the agent, so they are no achievement of its own.
        if group.origin != "exemplar":
            best = group.high if best is None else max(best, group.high)
        row.best = best
    return list(rows.values())
