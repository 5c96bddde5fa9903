"""Findings of an evaluation of biases: statements by effect size, each with its sets of images."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.core.thumbnails import ImageUrls, is_key
from experiments.display.plots import Axis, Interval
from experiments.models import Evaluation, EvaluationItem
from workers.record.evaluations import Cell, EvaluationResult

AXIS = Axis(-3.0, 3.0, 0, 1000)
"""Axis of effect sizes in standard deviations. Larger ones are drawn at its ends."""
MAX_STATEMENTS, IMAGES = 100, 8
"""Maximum number of statements on a page, and of images in a set."""
TABLE = "statements"
"""Key of the table of statements: class, statement, effect, p, corrected p, whether it holds."""
CONTEXT = re.compile("(with|without) \N{LEFT DOUBLE QUOTATION MARK}(.*)\N{RIGHT DOUBLE QUOTATION MARK}", re.DOTALL)
"""Name of a set of images in an item's evidence."""


@dataclass(frozen=True)
class BiasFinding:
    """A statement with its figures, and the images with and without its context."""

    item: EvaluationItem | None
    about: str
    statement: str
    effect: Cell
    p: float | None
    adjusted_p: float | None
    verdict: str
    interval: Interval | None
    sets: Sequence[tuple[str, Sequence[ImageUrls]]]

    @property
    def holds(self) -> bool:
        """True if the corrected test holds at 5 %."""
        return self.verdict == "yes"


def list_findings(evaluation: Evaluation, result: EvaluationResult) -> list[BiasFinding]:
    """Return the findings, largest effect first, as the viewer may see them."""
    # Shorter rows come from a version with other columns.
    rows = [row for table in result.tables if table.key == TABLE for row in table.rows if len(row) >= 6]
    wanted = {row[0].item for row in rows if row[0].item is not None}
    items = evaluation.items.select_related("run").in_bulk(wanted)
    found = [_read(row, items.get(row[0].item or 0)) for row in rows]
    return sorted(found, key=lambda each: -abs(each.effect.value or 0.0))[:MAX_STATEMENTS]


def _read(row: Sequence[Cell], item: EvaluationItem | None) -> BiasFinding:
    about, statement, effect, p, adjusted_p, verdict, *_ = row
    # A statement that could not be tested has no effect
    value = effect.value
    interval = None if value is None else Interval.on(AXIS, value, effect.low, effect.high)
    sets = _find_sets(item, statement.text) if item else []
    return BiasFinding(
        item, about.text, statement.text, effect, p.value, adjusted_p.value, verdict.text, interval, sets
    )


def _find_sets(item: EvaluationItem, statement: str) -> list[tuple[str, list[ImageUrls]]]:
    """Return the images of the longest context named in the statement; if there is only one context, its images."""
    sets = {key: (found[1], found[2]) for key in item.evidence if (found := CONTEXT.fullmatch(key))}
    # The longest first: "on snow" must not win over "on snow at night"
    contexts = sorted({context for _, context in sets.values()}, key=len, reverse=True)
    named = [each for each in contexts if each.casefold() in statement.casefold()] or contexts[: len(contexts) == 1]
    chosen = [(word, key) for key, (word, context) in sets.items() if named and context == named[0]]
    # Evidence is JSON from a worker: only keys of images become addresses.
    return [
        (key, [ImageUrls.of(each) for each in item.evidence[key] if is_key(each)][:IMAGES]) for _, key in sorted(chosen)
    ]
