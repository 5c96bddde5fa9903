"""What an evaluation will take, before it starts: from runs of its backbone and checks that were recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev

from experiments.evaluations.kinds import KINDS
from experiments.models import CheckStatus, Evaluation, LabelCheck, Run
from workers.record.statuses import Status

RECORDED = 300
"""Runs, and checks, that are read, the newest."""
SURE = 0.9
"""Of ten sums nine are at most the upper one."""
ONCE = 2.0
"""Of one recorded value no spread is known: twice as much stands for the upper sum."""


@dataclass(frozen=True)
class Spread:
    """A sum over many, as the recorded ones let expect it: the likeliest, and what nine of ten are at most."""

    usual: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float], count: int) -> Spread | None:
        """The sum of `count` more like the recorded ones; None where nothing is recorded.

        The upper limit of a prediction by Student's t: the sum varies by itself, and so does the mean of few records.
        """
        if not values:
            return None
        usual, recorded = mean(values) * count, len(values)
        if recorded == 1:
            return cls(usual, ONCE * usual)
        from scipy.stats import t

        error = stdev(values) * sqrt(count + count * count / recorded)
        return cls(usual, usual + float(t.ppf(SURE, recorded - 1)) * error)

    def __add__(self, other: Spread) -> Spread:
        """Of two that vary apart from each other."""
        beyond = sqrt((self.high - self.usual) ** 2 + (other.high - other.usual) ** 2)
        return Spread(self.usual + other.usual, self.usual + other.usual + beyond)


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
    requests: float
    """Replies of a backbone that a run takes, on average; 0 where none is recorded."""


def predict(evaluation: Evaluation, labels: int | None = None) -> Forecast:
    """Of an evaluation that need not be saved; `labels`: how many its sources have."""
    options, kind = evaluation.options, KINDS[evaluation.kind]
    units = min(options.get("units", kind.units), labels) if labels is not None else options.get("units", kind.units)
    runs, checks = kind.count(units, options.get("repeats", 1), len(options.get("sources", ())))
    of_runs = _read_runs(evaluation) if runs else []
    done = LabelCheck.objects.filter(status=CheckStatus.DONE, seconds__gt=0).order_by("-pk")
    of_checks = list(done.values_list("seconds", "cost")[:RECORDED]) if checks else []
    known = bool(of_runs) or not runs
    seconds = [Spread.of([row[0] for row in of_runs], runs), Spread.of([row[0] for row in of_checks], checks)]
    cost = [Spread.of([row[1] for row in of_runs], runs), Spread.of([row[1] for row in of_checks], checks)]
    requests = mean(row[2] for row in of_runs) if of_runs else 0.0
    return Forecast(
        runs,
        checks,
        _add(seconds) if known else None,
        _add(cost) if known else None,
        len(of_runs),
        len(of_checks),
        requests,
    )


def _read_runs(evaluation: Evaluation) -> list[tuple[float, float, int]]:
    """Seconds, cost and rounds of the newest runs of the backbone that ended."""
    ended = Run.objects.filter(
        backbone=evaluation.backbone,
        backbone_model=evaluation.backbone_model,
        status__in=[Status.CONCLUDED, Status.LIMIT_REACHED],
        seconds__gt=0,
    )
    return list(ended.order_by("-pk").values_list("seconds", "cost", "rounds")[:RECORDED])


def _add(parts: Sequence[Spread | None]) -> Spread | None:
    known = [each for each in parts if each is not None]
    return sum(known[1:], known[0]) if known else None
