"""Compare two evaluations of one kind: figures with differences, items that got worse, unfinished items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display.label_checks import fetch_checks
from experiments.evaluations import lists
from experiments.evaluations.results import read_result
from experiments.models import Evaluation, EvaluationItem, ItemStatus
from workers.record.evaluations import Figure

MIN_CHANGE = 0.005
"""Minimum change of a score that counts."""
MAX_ITEMS = 200
"""Maximum length of each list of items."""


@dataclass(frozen=True)
class FigurePair:
    """A figure in both evaluations; None if one lacks it. `apart` is true if the intervals do not overlap."""

    label: str
    a: Figure | None
    b: Figure | None

    @property
    def difference(self) -> float | None:
        if self.a is None or self.b is None or self.a.value is None or self.b.value is None:
            return None
        return self.b.value - self.a.value

    @property
    def apart(self) -> bool:
        a, b = self.a, self.b
        if a is None or b is None or a.low is None or a.high is None or b.low is None or b.high is None:
            return False
        # Disjoint intervals: stricter than a test of the difference, but it needs no pairs.
        return b.low > a.high or a.low > b.high


@dataclass(frozen=True)
class ItemPair:
    """One unit by one source in both evaluations. `difference` is that of `score_of`, None if either has no score."""

    name: str
    a: EvaluationItem | None
    b: EvaluationItem | None

    @property
    def difference(self) -> float | None:
        a, b = (None if each is None else score_of(each) for each in (self.a, self.b))
        return None if a is None or b is None else b - a


@dataclass(frozen=True)
class Comparison:
    """The comparison of two evaluations. `cut` is true if a list was shortened."""

    figures: Sequence[FigurePair]
    worse: Sequence[ItemPair]
    better: int
    same: int
    unfinished: Sequence[ItemPair]
    alone: int
    """Number of items that only one of them has."""
    cut: bool


def score_of(item: EvaluationItem) -> float | None:
    """Return 1 or 0 for right or wrong if the truth is known; else r of its check."""
    right = item.scores.get("right")
    if isinstance(right, bool | int | float):
        return float(right)
    return item.label_check.pearson if item.label_check else None


def compare(a: Evaluation, b: Evaluation, names: SystemNameMasker) -> Comparison:
    """Compare two evaluations of one kind. Units are named as the viewer may see them."""
    figures_a, figures_b = ({each.key: each for each in read_result(row).figures} for row in (a, b))
    figures = [
        FigurePair((figures_a.get(key) or figures_b[key]).label, figures_a.get(key), figures_b.get(key))
        # Each figure once, in the order of the first evaluation.
        for key in dict.fromkeys([*figures_a, *figures_b])
    ]
    items_a, items_b = _read_items(a), _read_items(b)
    both = [(items_a[key], items_b[key]) for key in items_a if key in items_b]
    pairs = [ItemPair(_name(one, names), one, other) for one, other in both]
    # Items without a score on both sides are neither better nor worse
    changed = [(pair.difference, pair) for pair in pairs if pair.difference is not None]
    worse = sorted(((by, pair) for by, pair in changed if by < -MIN_CHANGE), key=lambda each: each[0])
    # Shown separately: a missing score is not a worse one
    unfinished = [pair for pair in pairs if any(each and each.status != ItemStatus.DONE for each in (pair.a, pair.b))]
    return Comparison(
        figures,
        [pair for _, pair in worse[:MAX_ITEMS]],
        sum(by > MIN_CHANGE for by, _ in changed),
        sum(abs(by) <= MIN_CHANGE for by, _ in changed),
        unfinished[:MAX_ITEMS],
        len(items_a.keys() ^ items_b.keys()),
        len(worse) > MAX_ITEMS or len(unfinished) > MAX_ITEMS,
    )


Key = tuple[str, str, str, str]


def _read_items(evaluation: Evaluation) -> dict[Key, EvaluationItem]:
    """Return items by unit, source, group and options. Of equal ones the first."""
    rows = visible_to(evaluation.items.select_related("unit__layer__model", "run")).prefetch_related(fetch_checks())
    found: dict[Key, EvaluationItem] = {}
    for row in rows.order_by("position"):
        # By name, because units may have left the catalogue
        found.setdefault((row.unit_name, row.source, row.group, repr(sorted(row.options.items()))), row)
    return found


def _name(item: EvaluationItem, names: SystemNameMasker) -> str:
    return f"{lists.name_item(item, names)}, {item.source}"
