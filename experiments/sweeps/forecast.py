"""Forecast the cost and time of a sweep from recorded runs: before it starts, and for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.core import worker_status
from experiments.models import Sweep
from experiments.models.stored import Variant
from experiments.runs.prediction_interval import PredictionInterval, RecordedRun, add, read_alike
from experiments.sweeps.selection import count_units


@dataclass(frozen=True)
class SweepForecast:
    """Forecast for a number of runs; None for a backbone without recorded runs."""

    units: int
    runs: int
    seconds: PredictionInterval | None
    """Of work, all runs together."""
    cost: PredictionInterval | None
    tokens: PredictionInterval | None
    recorded: int
    """Number of recorded runs behind it."""
    unknown: Sequence[str]
    """Backbones of which no run is recorded."""
    threads: int
    """Rounds that the current workers execute at once."""

    @property
    def clock(self) -> PredictionInterval | None:
        """Return wall-clock seconds, if the current workers do nothing else; None without any."""
        if self.seconds is None or not self.threads:
            return None
        # A run plays its rounds one after the other: more threads than runs do not help
        at_once = min(self.threads, self.runs) or 1
        return PredictionInterval(self.seconds.expected / at_once, self.seconds.upper / at_once)


def predict(sweep: Sweep) -> SweepForecast:
    """Forecast a sweep, saved or not."""
    units = count_units(sweep)
    return _predict(sweep, units, dict.fromkeys(range(len(sweep.variants)), units))


def predict_rest(sweep: Sweep, left: int) -> SweepForecast:
    """Forecast `left` runs of a sweep under way, spread evenly over its variants."""
    # The first variants get one run more.
    each, more = divmod(left, max(len(sweep.variants), 1))
    return _predict(sweep, left, {place: each + (place < more) for place in range(len(sweep.variants))})


def _predict(sweep: Sweep, units: int, counts: dict[int, int]) -> SweepForecast:
    recorded = [_read(sweep, variant) for variant in sweep.variants]
    unknown = [_name_variant(each) for each, rows in zip(sweep.variants, recorded, strict=True) if not rows]

    def sum_up(values: Sequence[list[float]]) -> PredictionInterval | None:
        return (
            # One unknown part makes the sum unknown: it would look too small.
            None if unknown else add([PredictionInterval.of(each, counts[place]) for place, each in enumerate(values)])
        )

    return SweepForecast(
        units,
        sum(counts.values()),
        sum_up([[row.seconds for row in rows] for rows in recorded]),
        sum_up([[row.cost for row in rows] for rows in recorded]),
        sum_up([[float(row.tokens) for row in rows] for rows in recorded]),
        sum(map(len, recorded)),
        unknown,
        sum(
            each.get("threads", 0)
            for each in worker_status.alive_workers() or ()
            if worker_status.state(each) in ("ready", "busy")
        ),
    )


def _read(sweep: Sweep, variant: Variant) -> list[RecordedRun]:
    """Return runs of the same backbone: of this sweep, else of its model and toolset, else all there are."""
    backbone = (variant["backbone"], variant["backbone_model"])
    alike = {"toolset": variant["toolset"], "model": sweep.selection.get("model", ""), "task": sweep.task}
    # Runs of the sweep itself tell most about its rest.
    narrower = [{"sweep": sweep, "toolset": variant["toolset"]}] if sweep.pk else []
    return read_alike(*backbone, *narrower, alike)


def _name_variant(variant: Variant) -> str:
    """Return a backbone with its model, as agents are written."""
    model = variant["backbone_model"]
    return f"{variant['backbone']}:{model}" if model else variant["backbone"]
