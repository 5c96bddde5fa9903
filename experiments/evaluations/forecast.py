"""Forecast what an evaluation will take, from recorded runs of its backbone, checks and preparations; without records
for the scripted scientist, from another machine."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean

from experiments.core.compatibility import SCRIPTED, SCRIPTED_FUNCTIONS
from experiments.models import CheckStatus, Evaluation, LabelCheck
from experiments.runs.prediction_interval import RECORDED, PredictionInterval, RecordedRun, add, read_recorded
from workers.record.evaluation_kinds import KINDS, KindRow

PLANNING = "seconds"
"""Key of `Evaluation.prepared`: seconds of planning and training before the first item."""


@dataclass(frozen=True)
class Forecast:
    """Numbers of runs and checks, and what they will take with preparations; None if no run of the backbone is
    recorded. `recorded` is the number of runs behind it."""

    runs: int
    checks: int
    seconds: PredictionInterval | None
    cost: PredictionInterval | None
    recorded: int
    recorded_checks: int
    requests: float
    """Mean number of replies per run; 0 without records."""
    preparation: float
    """Seconds before the first item."""
    elsewhere: bool
    """True if it is based on another machine, because nothing is recorded here."""


def predict(evaluation: Evaluation, labels: int | None = None) -> Forecast:
    """Forecast an evaluation, saved or not. `labels` is the number of labels of its sources."""
    options, kind = evaluation.options, KINDS[evaluation.kind]
    # 1. How many runs and checks.
    units = kind.count_units(options.get("units", kind.units), len(options.get("layers", ())))
    autoencoders = len(options.get("autoencoders", ()))
    # A source may label fewer units than were chosen
    units = min(units, labels) if labels is not None else units
    repeats = options.get("repeats", 1)
    sources, hints = len(options.get("sources", ())), bool(options.get("hints"))
    runs, checks = kind.count(units, repeats, sources, hints=hints, autoencoders=autoencoders)
    # 2. What one of each took before.
    recorded = read_recorded(evaluation.backbone, evaluation.backbone_model) if runs else []
    # Only the scripted backbones have figures from another machine
    elsewhere = bool(runs) and not recorded and evaluation.backbone in (SCRIPTED, SCRIPTED_FUNCTIONS)
    of_runs = [RecordedRun(kind.run_seconds, 0.0, 0, 0)] if elsewhere else recorded
    done = LabelCheck.objects.filter(status=CheckStatus.DONE, seconds__gt=0).order_by("-pk")
    found = list(done.values_list("seconds", "cost")[:RECORDED]) if checks else []
    of_checks = found or ([(kind.check_seconds, 0.0)] if elsewhere else [])
    # Without any recorded run, a forecast of checks alone would be far too low.
    known, before = bool(of_runs) or not runs, _predict_preparation(kind, repeats)
    # 3. The sums; preparations come on top.
    seconds = [
        PredictionInterval.of([row.seconds for row in of_runs], runs),
        PredictionInterval.of([row[0] for row in of_checks], checks),
        _predict_items(kind, units * repeats * max(1, autoencoders)),
    ]
    cost = [
        PredictionInterval.of([row.cost for row in of_runs], runs),
        PredictionInterval.of([row[1] for row in of_checks], checks),
    ]
    return Forecast(
        runs,
        checks,
        add([*seconds, before]) if known else None,
        add(cost) if known else None,
        len(recorded),
        len(found),
        mean(row.rounds for row in recorded) if recorded else 0.0,
        before.expected,
        elsewhere,
    )


def _predict_items(kind: KindRow, count: int) -> PredictionInterval | None:
    """Forecast items that need neither a run nor a check; None for other kinds."""
    return PredictionInterval.of([kind.item_seconds], count) if kind.item_seconds else None


def _predict_preparation(kind: KindRow, repeats: int) -> PredictionInterval:
    """Forecast preparations as the longest recorded one, because shorter ones reused existing work."""
    rows = Evaluation.objects.filter(kind=kind.key, planned=True).order_by("-pk").values_list("prepared", "options")
    took = [(prepared.get(PLANNING), max(1, options.get("repeats", 1))) for prepared, options in rows[:RECORDED]]
    # Per seed, because each one has its own preparations
    most = max((seconds / seeds for seconds, seeds in took if isinstance(seconds, float)), default=0.0)
    return (
        PredictionInterval(most * repeats, most * repeats)
        if most
        else PredictionInterval.of([kind.preparation], repeats) or PredictionInterval(0, 0)
    )
