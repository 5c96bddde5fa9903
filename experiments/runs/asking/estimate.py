"""Forecast the cost and time of a run from recorded ones: shown beside the button that starts it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiments.core import compatibility
from experiments.runs.prediction_interval import PredictionInterval, read_alike


@dataclass(frozen=True)
class RunEstimate:
    """The total of `runs` runs; None for unknown parts."""

    runs: int
    seconds: PredictionInterval | None
    cost: PredictionInterval | None
    recorded: int
    """Number of recorded runs behind it."""
    by_person: bool
    """True if a person writes the replies: then time and cost are unknown."""

    @property
    def is_free(self) -> bool:
        return self.cost is not None and self.cost.upper <= 0


def estimate(values: Mapping[str, Any], runs: int = 1) -> RunEstimate:
    """Forecast `runs` runs of the form."""
    backbone = str(values.get("backbone") or "")
    if backbone == compatibility.PERSON:
        return RunEstimate(runs, None, None, 0, by_person=True)
    model = compatibility.model_of(backbone, str(values.get("backbone_model") or ""))
    # Runs like this one first; if there are too few, all of the backbone.
    alike = {name: str(values.get(name) or "") for name in ("toolset", "model", "task")}
    rows = read_alike(backbone, model, alike)
    priced = not compatibility.price_unknown(backbone, model)
    return RunEstimate(
        runs,
        PredictionInterval.of([row.seconds for row in rows], runs),
        PredictionInterval.of([row.cost for row in rows], runs) if priced else None,
        len(rows),
        by_person=False,
    )
