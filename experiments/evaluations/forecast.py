"""What an evaluation will take, before it starts: from runs of its backbone and checks that were recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from experiments.evaluations.kinds import KINDS
from experiments.models import CheckStatus, Evaluation, LabelCheck, Run
from workers.record.statuses import Status

RECORDED = 300
"""Runs, and checks, that are read, the newest."""
FEWEST = 5
"""Below this the slowest stands for the 90 % quantile."""


@dataclass(frozen=True)
class Spread:
    """A sum over many: as if each were the median, and as if each were at the 90 % quantile."""

    usual: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float], count: int) -> Spread | None:
        if not values:
            return None
        high = quantiles(values, n=10)[-1] if len(values) >= FEWEST else max(values)
        return cls(median(values) * count, max(high, median(values)) * count)

    def __add__(self, other: Spread) -> Spread:
        return Spread(self.usual + other.usual, self.high + other.high)


@dataclass(frozen=True)
class Forecast:
    """How many runs and checks, and what they will take; None where nobody has recorded a run of the backbone.
    `recorded` is how many runs that rests on."""

    runs: int
    checks: int
    seconds: Spread | None
    cost: Spread | None
    recorded: int
    recorded_checks: int


def predict(evaluation: Evaluation, labels: int | None = None) -> Forecast:
    """Of an evaluation that need not be saved; `labels`: how many its sources have."""
    options, kind = evaluation.options, KINDS[evaluation.kind]
    units = min(options.get("units", kind.units), labels) if labels is not None else options.get("units", kind.units)
    runs, checks = kind.count(units, options.get("repeats", 1), len(options.get("sources", ())))
    ended = Run.objects.filter(
        backbone=evaluation.backbone,
        backbone_model=evaluation.backbone_model,
        status__in=[Status.CONCLUDED, Status.LIMIT_REACHED],
        seconds__gt=0,
    )
    of_runs = list(ended.order_by("-pk").values_list("seconds", "cost")[:RECORDED]) if runs else []
    done = LabelCheck.objects.filter(status=CheckStatus.DONE, seconds__gt=0).order_by("-pk")
    of_checks = list(done.values_list("seconds", "cost")[:RECORDED]) if checks else []
    parts = [(of_runs, runs), (of_checks, checks)]
    known = bool(of_runs) or not runs
    sums = [
        [found for rows, count in parts if (found := Spread.of([row[column] for row in rows], count))]
        for column in (0, 1)
    ]
    seconds, cost = (sum(found, Spread(0.0, 0.0)) if known and found else None for found in sums)
    return Forecast(runs, checks, seconds, cost, len(of_runs), len(of_checks))
