"""Every vote of a trial as CSV, and every pair that nobody judged: nothing is left out."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from typing import Any

from django.http import HttpResponse

from experiments.core.errors import StateConflict
from experiments.core.spreadsheets import cell
from experiments.core.visibility import visible_to
from experiments.models import PairwiseTrial, Vote
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
    out = io.StringIO()
    _write_votes(trial, out)
    response = HttpResponse(out.getvalue().encode("utf-8-sig"), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="maia-votes-{trial.pk}.csv"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _write_votes(trial: PairwiseTrial, out: io.StringIO) -> None:
    """The file; a pair without a vote has one line with empty columns."""
    writer = csv.writer(out)
    writer.writerow([cell(name) for name in COLUMNS])
    votes: dict[int, list[Vote]] = defaultdict(list)
    for vote in Vote.objects.filter(judge__trial=trial).select_related("judge__user", "pair"):
        votes[vote.pair_id].append(vote)
    for pair in visible_to(trial.pairs.select_related("original")).order_by("position"):
        repeats = pair.original.position if pair.original else None
        said = (sources.words(pair.source_a), pair.text_a, sources.words(pair.source_b), pair.text_b)
        known = [trial.name, pair.position, pair.kind, repeats, pair.unit_name, pair.truth, *said]
        for cells in [_vote_cells(vote) for vote in votes[pair.pk]] or [[None] * 8]:
            writer.writerow([cell(each) for each in [*known, *cells]])


def _vote_cells(vote: Vote) -> list[Any]:
    by = "person" if vote.judge.user_id else "backbone"
    source = preferred_source(vote)
    won = sources.words(source) if source else ""
    first = "b" if vote.swapped else "a"
    return [name_of(vote.judge), by, vote.answer, won, first, vote.seconds, vote.time, vote.reply]
