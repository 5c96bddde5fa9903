"""What a run will take, judging by recorded ones: said beside the button that starts it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiments.core import compatibility
from experiments.runs.spread import Spread, read_alike


@dataclass(frozen=True)
class RunEstimate:
    """Of `runs` runs together; None of what nobody has recorded or nobody can know."""

    runs: int
    seconds: Spread | None
    cost: Spread | None
    recorded: int
    """Runs that this rests on."""
    by_person: bool
    """Whether a person writes the replies: then nobody knows."""

    @property
    def is_free(self) -> bool:
        return self.cost is not None and self.cost.high <= 0


def estimate(values: Mapping[str, Any], runs: int = 1) -> RunEstimate:
    """What the form asks for, `runs` times."""
    backbone = str(values.get("backbone") or "")
    if backbone == compatibility.PERSON:
        return RunEstimate(runs, None, None, 0, by_person=True)
    model = compatibility.model_of(backbone, str(values.get("backbone_model") or ""))
    alike = {name: str(values.get(name) or "") for name in ("toolset", "model", "task")}
    rows = read_alike(backbone, model, alike)
    priced = not compatibility.price_unknown(backbone, model)
    return RunEstimate(
        runs,
        Spread.of([row.seconds for row in rows], runs),
        Spread.of([row.cost for row in rows], runs) if priced else None,
        len(rows),
        by_person=False,
    )
