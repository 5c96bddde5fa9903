"""Every choice of a trial as CSV, and every pair that nobody judged: nothing is left out."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from experiments.core.spreadsheets import cell
from experiments.models import Pair, PairwiseTrial, Vote
from experiments.pairwise import sources
from experiments.pairwise.results import name_of, preferred

COLUMNS = (
    "trial", "position", "kind", "repeats", "unit", "truth", "source_a", "label_a", "source_b", "label_b",
    "judge", "judged_by", "answer", "preferred", "shown_first", "seconds", "time", "reply",
)  # fmt: skip


def lines(trial: PairwiseTrial) -> Iterator[str]:
    """The file, line by line; a pair without a choice has one line with empty columns."""
    yield line(COLUMNS)
    choices: dict[int, list[Vote]] = {}
    for choice in Vote.objects.filter(judge__trial=trial).select_related("judge__user", "pair"):
        choices.setdefault(choice.pair_id, []).append(choice)
    for pair in trial.pairs.select_related("original").order_by("position"):
        some = [of_choice(choice) for choice in choices.get(pair.pk, [])] or [[None] * 8]
        yield from (line([*of_pair(trial, pair), *cells]) for cells in some)


def of_pair(trial: PairwiseTrial, pair: Pair) -> list[Any]:
    repeats = pair.original.position if pair.original else None
    said = (sources.words(pair.source_a), pair.text_a, sources.words(pair.source_b), pair.text_b)
    return [trial.name, pair.position, pair.kind, repeats, pair.unit_name, pair.truth, *said]


def of_choice(choice: Vote) -> list[Any]:
    by = "person" if choice.judge.user_id else "backbone"
    won = sources.words(preferred(choice)) if preferred(choice) else ""
    first = "b" if choice.swapped else "a"
    return [name_of(choice.judge), by, choice.answer, won, first, choice.seconds, choice.time, choice.reply]


def line(cells: Any) -> str:
    out = io.StringIO()
    csv.writer(out).writerow([cell(each) for each in cells])
    return out.getvalue()
