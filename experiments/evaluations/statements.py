"""What an evaluation of biases found: statements by the size of their effect, each with its sets of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments.core.thumbnails import ImageUrls, is_key
from experiments.display.plots import Axis, Interval
from experiments.models import Evaluation, EvaluationItem

AXIS = Axis(-3.0, 3.0, 0, 1000)
"""Of effect sizes, in standard deviations; larger ones are drawn at its ends."""
SHOWN, IMAGES = 100, 8
"""Statements of a page, and images of each set."""


@dataclass(frozen=True)
class BiasFinding:
    """A statement with its figures and the images with and without what it speaks of."""

    item: EvaluationItem
    statement: str
    effect: float | None
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    interval: Interval | None
    sets: Sequence[tuple[str, Sequence[ImageUrls]]]

    @property
    def holds(self) -> bool | None:
        """Whether the corrected test holds at 5 %; None without one."""
        return None if self.p_holm is None else self.p_holm < 0.05


def list_findings(evaluation: Evaluation) -> list[BiasFinding]:
    """Those with the largest effect first."""
    rows = evaluation.items.select_related("run", "unit__layer__model").order_by("position")
    found = [_read(row) for row in rows if isinstance(row.scores.get("statement"), str)]
    return sorted(found, key=lambda each: -abs(each.effect or 0.0))[:SHOWN]


def _read(item: EvaluationItem) -> BiasFinding:
    scores = item.scores
    effect, low, high, p, p_holm = (_figure(scores, name) for name in ("effect", "low", "high", "p", "p_holm"))
    interval = None if effect is None else Interval.on(AXIS, effect, low, high)
    sets = [
        (name, [ImageUrls.of(key) for key in keys if is_key(key)][:IMAGES])
        for name, keys in sorted(item.evidence.items())
    ]
    return BiasFinding(item, str(scores["statement"]), effect, low, high, p, p_holm, interval, sets)


def _figure(scores: Mapping[str, object], name: str) -> float | None:
    value = scores.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
