"""The floors of a check as its page shows them: a lane on the axis and a row of a table for each kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from experiments.display.label_checks import AXIS
from workers.record.figures import figure
from workers.record.label_checks import FOREIGN_LABEL, RANDOM_UNIT, FloorFigure, FloorSpread, NaturalResult, Reference

KINDS = {FOREIGN_LABEL: ("label", "of another unit", "of other units"), RANDOM_UNIT: ("unit", "at random", "at random")}
"""Kind of floor -> its noun, and what follows it for one and for several."""
Measure = Literal["pearson", "auprc"]


@dataclass(frozen=True)
class FloorLane:
    """The floors of a kind on the axis of a figure, in thousandths of its width."""

    kind: str
    start: float
    end: float
    mean: float
    ticks: Sequence[float]
    words: str

    @property
    def width(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class FloorRow:
    """All floors of a kind, in words and figures; `floors` one by one."""

    words: str
    spread: FloorSpread
    floors: Sequence[Reference]

    @property
    def figures(self) -> tuple[FloorFigure, FloorFigure]:
        return self.spread.pearson, self.spread.auprc


def read_lanes(found: NaturalResult, measure: Measure) -> list[FloorLane]:
    """Of the kinds of which the figure is known."""
    lanes = []
    for row in read_rows(found):
        floor: FloorFigure = getattr(row.spread, measure)
        if floor.mean is None or floor.least is None or floor.most is None:
            continue
        values = [value for each in row.floors if (value := getattr(each, measure)) is not None]
        words = f"floor, {row.words}: {figure(floor.mean)}"
        if len(values) > 1:
            words = f"floor, {row.words}: mean {figure(floor.mean)}, {figure(floor.least)} to {figure(floor.most)}"
        places = (AXIS.at(floor.least), AXIS.at(floor.most), AXIS.at(floor.mean))
        lanes.append(FloorLane(row.spread.kind, *places, [AXIS.at(value) for value in values], words))
    return lanes


def read_rows(found: NaturalResult) -> list[FloorRow]:
    """Kinds that are known here; none of a check from before there were several floors of a kind."""
    return [
        FloorRow(_describe(each), each, [floor for floor in found.floors if floor.kind == each.kind])
        for each in found.floor_spreads
        if each.kind in KINDS
    ]


def _describe(spread: FloorSpread) -> str:
    noun, one, several = KINDS[spread.kind]
    return f"1 {noun} {one}" if spread.count == 1 else f"{spread.count} {noun}s {several}"
