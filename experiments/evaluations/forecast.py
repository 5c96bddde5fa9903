"""What an evaluation will take, before it starts: from runs of its backbone and checks that were recorded."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean

from experiments.evaluations.kinds import KINDS
from experiments.models import CheckStatus, Evaluation, LabelCheck
from experiments.runs.spread import RECORDED, Spread, add, read_recorded


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
    of_runs = read_recorded(evaluation.backbone, evaluation.backbone_model) if runs else []
    done = LabelCheck.objects.filter(status=CheckStatus.DONE, seconds__gt=0).order_by("-pk")
    of_checks = list(done.values_list("seconds", "cost")[:RECORDED]) if checks else []
    known = bool(of_runs) or not runs
    seconds = [Spread.of([row.seconds for row in of_runs], runs), Spread.of([row[0] for row in of_checks], checks)]
    cost = [Spread.of([row.cost for row in of_runs], runs), Spread.of([row[1] for row in of_checks], checks)]
    requests = mean(row.rounds for row in of_runs) if of_runs else 0.0
    return Forecast(
        runs,
        checks,
        add(seconds) if known else None,
        add(cost) if known else None,
        len(of_runs),
        len(of_checks),
        requests,
    )
