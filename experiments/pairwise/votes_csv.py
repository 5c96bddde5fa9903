"""Rows of a trial's CSV file: every vote, and every pair without votes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from experiments.core.visibility import visible_to
from experiments.models import PairwiseTrial, Vote
from experiments.pairwise import sources
from experiments.pairwise.results import name_of, preferred_source

COLUMNS = (
    "trial", "position", "kind", "repeats", "unit", "truth", "source_a", "label_a", "source_b", "label_b",
    "judge", "judged_by", "answer", "preferred", "shown_first", "seconds", "time", "reply",
)  # fmt: skip


def list_rows(trial: PairwiseTrial) -> Iterator[Sequence[Any]]:
    """Yield a row for each vote, and one with empty columns for a pair without votes."""
    votes: dict[int, list[Vote]] = defaultdict(list)
    for vote in Vote.objects.filter(judge__trial=trial).select_related("judge__user", "pair"):
        votes[vote.pair_id].append(vote)
    for pair in visible_to(trial.pairs.select_related("original")).order_by("position"):
        repeats = pair.original.position if pair.original else None
        said = (sources.words(pair.source_a), pair.text_a, sources.words(pair.source_b), pair.text_b)
        known = [trial.name, pair.position, pair.kind, repeats, pair.unit_name, pair.truth, *said]
        for cells in [_vote_cells(vote) for vote in votes[pair.pk]] or [[None] * 8]:
            yield [*known, *cells]


def _vote_cells(vote: Vote) -> list[Any]:
    by = "person" if vote.judge.user_id else "backbone"
    source = preferred_source(vote)
    won = sources.words(source) if source else ""
    first = "b" if vote.swapped else "a"
    return [name_of(vote.judge), by, vote.answer, won, first, vote.seconds, vote.time, vote.reply]
