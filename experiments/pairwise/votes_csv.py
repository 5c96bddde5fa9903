"""Every vote of a trial as CSV, and every pair that nobody judged: nothing is left out."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from django.http import HttpResponse

from experiments.core.errors import StateConflict
from experiments.core.spreadsheets import cell
from experiments.models import Pair, PairwiseTrial, Vote
from experiments.pairwise import sources
from experiments.pairwise.results import name_of, preferred_source

COLUMNS = (
    "trial", "position", "kind", "repeats", "unit", "truth", "source_a", "label_a", "source_b", "label_b",
    "judge", "judged_by", "answer", "preferred", "shown_first", "seconds", "time", "reply",
)  # fmt: skip


def send_votes(trial: PairwiseTrial) -> HttpResponse:
    """The file. Raises StateConflict while it would tell whose the labels are."""
    if trial.closed is None:
        raise StateConflict("Which label is whose is hidden until the trial is closed; then its votes can be had here.")
    response = HttpResponse("".join(csv_lines(trial)), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="maia-votes-{trial.pk}.csv"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def csv_lines(trial: PairwiseTrial) -> Iterator[str]:
    """The file, line by line; a pair without a vote has one line with empty columns."""
    yield _line(COLUMNS)
    votes: dict[int, list[Vote]] = {}
    for vote in Vote.objects.filter(judge__trial=trial).select_related("judge__user", "pair"):
        votes.setdefault(vote.pair_id, []).append(vote)
    for pair in trial.pairs.select_related("original").order_by("position"):
        some = [_vote_cells(vote) for vote in votes.get(pair.pk, [])] or [[None] * 8]
        yield from (_line([*_pair_cells(trial, pair), *cells]) for cells in some)


def _pair_cells(trial: PairwiseTrial, pair: Pair) -> list[Any]:
    repeats = pair.original.position if pair.original else None
    said = (sources.words(pair.source_a), pair.text_a, sources.words(pair.source_b), pair.text_b)
    return [trial.name, pair.position, pair.kind, repeats, pair.unit_name, pair.truth, *said]


def _vote_cells(vote: Vote) -> list[Any]:
    by = "person" if vote.judge.user_id else "backbone"
    won = sources.words(preferred_source(vote)) if preferred_source(vote) else ""
    first = "b" if vote.swapped else "a"
    return [name_of(vote.judge), by, vote.answer, won, first, vote.seconds, vote.time, vote.reply]


def _line(cells: Any) -> str:
    out = io.StringIO()
    csv.writer(out).writerow([cell(each) for each in cells])
    return out.getvalue()
