"""Floors of a check on its page: one lane on the axis and one table row per kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from experiments.display.label_checks import AXIS
from workers.record.figures import figure
from workers.record.label_checks import FOREIGN_LABEL, RANDOM_UNIT, FloorFigure, FloorSpread, NaturalResult, Reference

KINDS = {FOREIGN_LABEL: ("label", "of another unit", "of other units"), RANDOM_UNIT: ("unit", "at random", "at random")}
"""Kind of floor -> its noun, and the words after it for one and for several."""
Measure = Literal["pearson", "auprc"]


@dataclass(frozen=True)
class FloorLane:
    """The floors of one kind on the axis of a score, in thousandths of its width."""

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
    """All floors of one kind, as text and figures. `floors` lists them one by one."""

    words: str
    spread: FloorSpread
    floors: Sequence[Reference]

    @property
    def figures(self) -> tuple[FloorFigure, FloorFigure]:
        return self.spread.pearson, self.spread.auprc


def read_lanes(found: NaturalResult, measure: Measure) -> list[FloorLane]:
    """Return the lanes of kinds with a known figure."""
    lanes = []
    for row in read_rows(found):
        floor: FloorFigure = getattr(row.spread, measure)
        if floor.mean is None or floor.least is None or floor.most is None:
            continue
        values = [value for each in row.floors if (value := getattr(each, measure)) is not None]
        words = f"floor, {row.words}: {figure(floor.mean)}"
        # A single floor has no spread
        if len(values) > 1:
            words = f"floor, {row.words}: mean {figure(floor.mean)}, {figure(floor.least)} to {figure(floor.most)}"
        places = (AXIS.at(floor.least), AXIS.at(floor.most), AXIS.at(floor.mean))
        lanes.append(FloorLane(row.spread.kind, *places, [AXIS.at(value) for value in values], words))
    return lanes


def read_rows(found: NaturalResult) -> list[FloorRow]:
    """Return the known kinds. Empty for checks from before there were several floors per kind."""
    return [
        FloorRow(_describe(each), each, [floor for floor in found.floors if floor.kind == each.kind])
        for each in found.floor_spreads
        if each.kind in KINDS
    ]


def _describe(spread: FloorSpread) -> str:
    noun, one, several = KINDS[spread.kind]
    return f"1 {noun} {one}" if spread.count == 1 else f"{spread.count} {noun}s {several}"
