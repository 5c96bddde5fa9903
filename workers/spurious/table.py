"""Compute Table 2 of MAIA's paper by its recipes (appendix F), and summarise it over several seeds.

Everything is fitted on features alone, and tested on classes on other grounds than in training. The rows of one seed do
not depend on the order in which they are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from workers.metrics.intervals import estimate_gap
from workers.protocols import Progress, no_progress
from workers.record.estimates import Estimate
from workers.spurious.features import GroupedFeatures
from workers.spurious.regression import STRENGTHS, FittedRegression, fit, l1_units, tune_strength

DRAWS = 100
"""Of random units."""
SETS = 10
"""Balanced sets."""
PER_CELL = 20
"""Images of each class on each ground in a balanced set: 320 of four and four."""

RowKey = Literal["original", "l1_all", "random", "l1_top", "agent", "balanced_all", "balanced_top"]
_TITLES: Mapping[RowKey, str] = {
    "original": "Original classifier",
    "l1_all": "l1: all {noun} that it chose",
    "random": "Random {noun} of these",
    "l1_top": "l1: as many {noun} as the agent kept",
    "agent": "The agent's selective {noun}",
    "balanced_all": "l1 tuned on balanced data",
    "balanced_top": "l1 on balanced data: as many {noun} as the agent kept",
}


@dataclass(frozen=True)
class GroupAccuracy:
    """Share of right answers, in [0, 1], of one class on one ground of the test."""

    class_name: str
    ground: str
    accuracy: float
    images: int


@dataclass(frozen=True)
class TableRow:
    """A line of the table. Of several draws or sets everything is the mean."""

    key: RowKey
    title: str
    units: float
    data: Literal["unbalanced", "balanced"]
    regularised: bool
    accuracy: float
    spread: float
    """Standard deviation over the repeats; 0 for one."""
    repeats: int
    groups: tuple[GroupAccuracy, ...]
    worst: GroupAccuracy


@dataclass(frozen=True)
class CurvePoint:
    """Accuracy on the test with so many units."""

    units: int
    accuracy: float


@dataclass(frozen=True)
class Table2:
    """The table of one seed."""

    dataset: str
    classifier: str
    seed: int
    classes: tuple[str, ...]
    grounds: tuple[str, ...]
    chosen: tuple[int, ...]
    """Units that the agent was asked about, the greatest weight of the l1 fit first."""
    selective: tuple[int, ...]
    """Those that it called selective."""
    unfinished: tuple[int, ...]
    """Those without a verdict; they count as not selective in the rows."""
    rows: tuple[TableRow, ...]
    l1_curve: tuple[CurvePoint, ...]
    agent_curve: tuple[CurvePoint, ...]
    noun: str = "units"

    def row(self, key: RowKey, *, regularised: bool) -> TableRow | None:
        """Return a row by its key; None where there is none."""
        return next((row for row in self.rows if row.key == key and row.regularised == regularised), None)


@dataclass(frozen=True)
class Splits:
    """Features of the splits that the table is made of."""

    validation: GroupedFeatures
    balanced: GroupedFeatures
    test: GroupedFeatures
    classes: tuple[str, ...]
    grounds: tuple[str, ...]
    noun: str = "units"
    """Units, or latents instead."""


@dataclass(frozen=True)
class FixedRows:
    """Rows that no verdict changes: made once for a seed."""

    rows: tuple[TableRow, ...]
    l1_curve: tuple[CurvePoint, ...]


def compute_fixed_rows(
    splits: Splits,
    head: tuple[NDArray[np.float32], NDArray[np.float32]],
    chosen: FittedRegression,
    seed: int,
    progress: Progress = no_progress,
    own: NDArray[np.float32] | None = None,
) -> FixedRows:
    """Return the original, l1 with all its units, the best on balanced data, and the curve of l1.

    `own`: the test as the head takes it, where the splits hold something else.
    """
    units, validation, test = chosen.used, splits.validation, splits.test
    weights, bias = head
    # The head is the classifier's own: nothing is fitted for this row
    original = np.asarray(((test.values if own is None else own) @ weights.T + bias).argmax(1), dtype=np.int64)
    # The same units without a penalty, to tell the choice from the shrinking
    plain = fit(validation.values, validation.classes, units)
    whole, bare = [], []
    for at in range(SETS):
        progress("fitting balanced sets", at, SETS)
        part = draw_balanced(splits.balanced, seed, at)
        found = fit(part.values, part.classes, strength=tune_strength(part.values, part.classes, seed + at))
        whole.append(found)
        bare.append(fit(part.values, part.classes, found.used))
    rows = (
        _row("original", splits, False, [original], [weights.shape[1]]),
        _row_of("l1_all", splits, True, [chosen]),
        _row_of("l1_all", splits, False, [plain]),
        _row_of("balanced_all", splits, True, whole),
        _row_of("balanced_all", splits, False, bare),
    )
    curve: dict[int, float] = {}
    for at, strength in enumerate(STRENGTHS):
        progress("following the l1 path", at, len(STRENGTHS))
        found = fit(validation.values, validation.classes, strength=float(strength))
        # Several strengths may keep equally many units: the last, with the weakest penalty, counts
        curve[len(found.used)] = float((found.predict(test.values) == test.classes).mean())
    return FixedRows(rows, tuple(CurvePoint(units, curve[units]) for units in sorted(curve)))


def compute_rows(
    splits: Splits,
    chosen: Sequence[int],
    selective: Sequence[int],
    seed: int,
    progress: Progress = no_progress,
) -> list[TableRow]:
    """Compute the rows that a verdict changes; none if no unit is selective."""
    count, validation = len(selective), splits.validation
    if not count:
        return []
    rng = np.random.default_rng(seed)
    # As many random units as the agent kept, of the same candidates
    draws = [rng.permutation(np.array(chosen))[:count] for _ in range(DRAWS)]
    random = []
    for at, units in enumerate(draws):
        progress("fitting random units", at, DRAWS)
        random.append(fit(validation.values, validation.classes, units))
    top = l1_units(validation.values, validation.classes, count)
    # The penalty of the agent's row is chosen on its own units
    strength = tune_strength(validation.values[:, list(selective)], validation.classes, seed)
    sets, bare = [], []
    for at in range(SETS):
        progress("choosing units on balanced sets", at, SETS)
        part = draw_balanced(splits.balanced, seed, at)
        sets.append(l1_units(part.values, part.classes, count))
        bare.append(fit(part.values, part.classes, sets[-1].used))
    return [
        _row_of("random", splits, False, random),
        _row_of("l1_top", splits, True, [top]),
        _row_of("l1_top", splits, False, [fit(validation.values, validation.classes, top.used)]),
        _row_of("agent", splits, False, [fit(validation.values, validation.classes, selective)]),
        _row_of("agent", splits, True, [fit(validation.values, validation.classes, selective, strength)]),
        _row_of("balanced_top", splits, True, sets),
        _row_of("balanced_top", splits, False, bare),
    ]


def trace_units(splits: Splits, selective: Sequence[int]) -> tuple[CurvePoint, ...]:
    """Return the accuracy with the first 1, 2, … of the agent's units in their order, unregularised."""
    validation, test = splits.validation, splits.test
    points = []
    # In the agent's order, the greatest weight first
    for count in range(1, len(selective) + 1):
        found = fit(validation.values, validation.classes, selective[:count])
        points.append(CurvePoint(count, float((found.predict(test.values) == test.classes).mean())))
    return tuple(points)


def draw_balanced(features: GroupedFeatures, seed: int, number: int) -> GroupedFeatures:
    """Return so many images of each class on each ground, at most `PER_CELL`; another number draws others."""
    # Seed and number: each set is another draw
    rng = np.random.default_rng((seed, number))
    cells = np.unique(features.cells, axis=0)
    rows = [rng.permutation(np.flatnonzero((features.cells == cell).all(1)))[:PER_CELL] for cell in cells]
    # Equally many of each, limited by the smallest cell
    least = min(map(len, rows))
    return features.take(np.concatenate([each[:least] for each in rows]))


def measure_groups(splits: Splits, answers: NDArray[np.int64]) -> tuple[GroupAccuracy, ...]:
    """Return the accuracy on the test by class and ground, the worst first."""
    found = []
    for class_number, ground in np.unique(splits.test.cells, axis=0):
        here = (splits.test.cells == (class_number, ground)).all(1)
        right = float((answers[here] == class_number).mean())
        found.append(GroupAccuracy(splits.classes[class_number], splits.grounds[ground], right, int(here.sum())))
    return tuple(sorted(found, key=lambda each: each.accuracy))


def _row_of(key: RowKey, splits: Splits, regularised: bool, found: Sequence[FittedRegression]) -> TableRow:
    answers = [each.predict(splits.test.values) for each in found]
    return _row(key, splits, regularised, answers, [len(each.used) for each in found])


def _row(
    key: RowKey, splits: Splits, regularised: bool, answers: Sequence[NDArray[np.int64]], units: Sequence[int]
) -> TableRow:
    """Return the mean over several answers to the test."""
    right = np.array([(each == splits.test.classes).mean() for each in answers])
    parts: dict[tuple[str, str], list[GroupAccuracy]] = {}
    for each in answers:
        # Each answer has all groups, so means are over equally many
        for group in measure_groups(splits, each):
            parts.setdefault((group.class_name, group.ground), []).append(group)
    means = [
        GroupAccuracy(*name, float(np.mean([each.accuracy for each in group])), group[0].images)
        for name, group in parts.items()
    ]
    groups = tuple(sorted(means, key=lambda each: each.accuracy))
    data: Literal["unbalanced", "balanced"] = "balanced" if key.startswith("balanced") else "unbalanced"
    spread = float(right.std(ddof=1)) if len(right) > 1 else 0.0
    mean = float(right.mean())
    return TableRow(
        key,
        _TITLES[key].format(noun=splits.noun),
        float(np.mean(units)),
        data,
        regularised,
        mean,
        spread,
        len(right),
        groups,
        groups[0],
    )


@dataclass(frozen=True)
class Headline:
    """(agent - l1 of as many units, unbalanced) / (l1 of as many, balanced - unbalanced), on means over seeds."""

    share: Estimate
    """With Fieller's interval over seeds; None where there is no gap to close."""
    agent: float
    l1: float
    balanced: float
    gap: float
    """balanced - unbalanced. Under 0.05 the data are too easy for the question."""


def compute_headline(tables: Sequence[Table2], *, regularised: bool = True) -> Headline | None:
    """Over tables of several seeds; None if none of them has a selective unit.

    `regularised` tells which rivals: the l1 fits themselves, as in the paper, or refits of their units without a
    penalty, as the agent's row is.
    """
    means = []
    for table in tables:
        rivals = table.row("l1_top", regularised=regularised), table.row("balanced_top", regularised=regularised)
        agent = table.row("agent", regularised=False)
        # A table counts only if all three are there: shares need the same seeds
        if agent and rivals[0] and rivals[1]:
            means.append((agent.accuracy, rivals[0].accuracy, rivals[1].accuracy))
    if not means:
        return None
    agent, l1, balanced = np.array(means).T
    share = estimate_gap(agent, l1, balanced)
    return Headline(
        share, float(agent.mean()), float(l1.mean()), float(balanced.mean()), float(balanced.mean() - l1.mean())
    )
