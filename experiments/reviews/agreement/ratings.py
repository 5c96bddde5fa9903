"""Reviews as tables of numbers: for each criterion, items by reviewers, with gaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from django.db.models import QuerySet
from numpy.typing import NDArray

from experiments.models import Review, ReviewVerdict
from experiments.reviews import rubric

Level = Literal["nominal", "ordinal"]
Numbers = NDArray[np.float64]
VERDICT = "verdict"


@dataclass(frozen=True)
class RatedLine:
    """A criterion. `values` are all possible ratings, in order if they are ordinal."""

    name: str
    words: str
    level: Level
    values: tuple[int, ...]


LINES = (
    RatedLine(VERDICT, "Verdict", "nominal", (0, 1, 2)),
    *(RatedLine(line.name, line.question.rstrip("?"), "ordinal", rubric.SCORES) for line in rubric.LINES),
)


@dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings on one criterion. `table` has shape (items, reviewers), NaN without a rating."""

    line: RatedLine
    table: Numbers
    reviewers: tuple[int, ...]

    # Arrays have neither a truth value nor a hash, which the cache of measures needs
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ratings) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @cached_property
    def _content(self) -> tuple[object, ...]:
        """Return the key by which results of measures are cached."""
        return self.line, self.reviewers, self.table.shape, self.table.tobytes()

    @property
    def counts(self) -> NDArray[np.int64]:
        """Return how many reviewers gave each value: shape (items, values), only items with two or more ratings."""
        counted = np.stack([(self.table == value).sum(axis=1) for value in self.line.values], axis=1)
        return np.asarray(counted[counted.sum(axis=1) >= 2], dtype=np.int64)

    def pair(self, one: int, other: int) -> tuple[Numbers, Numbers]:
        """Return the ratings of two reviewers on the items that both rated."""
        both = self.table[:, [self.reviewers.index(one), self.reviewers.index(other)]]
        kept = both[~np.isnan(both).any(axis=1)]
        return kept[:, 0], kept[:, 1]

    def exclude_rater(self, reviewer: int) -> Ratings:
        """Return the ratings of all other reviewers."""
        place = self.reviewers.index(reviewer)
        rest = tuple(each for each in self.reviewers if each != reviewer)
        return Ratings(self.line, np.delete(self.table, place, axis=1), rest)


def ratings(reviews: QuerySet[Review]) -> Mapping[str, Ratings]:
    """Return the ratings on each criterion. One query."""
    names = [line.name for line in LINES]
    rows = list(reviews.order_by().values_list("item_id", "reviewer_id", *names))
    # Sorted: equal reviews give equal tables, which the cache recognises.
    items = {item: place for place, item in enumerate(sorted({row[0] for row in rows}))}
    people = tuple(sorted({row[1] for row in rows}))
    places = {person: place for place, person in enumerate(people)}
    tables = {name: np.full((len(items), len(people)), np.nan) for name in names}
    for item, person, *given in rows:
        for name, value in zip(names, given, strict=True):
            if value not in (None, ""):
                # Verdicts are words; their places stand for them, without an order.
                rating = ReviewVerdict.values.index(value) if name == VERDICT else value
                tables[name][items[item], places[person]] = rating
    return {line.name: Ratings(line, tables[line.name], people) for line in LINES}
