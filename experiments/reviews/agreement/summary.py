"""Agreement laid out: a row for each line of the rubric, for each two reviewers, and for each reviewer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from django.contrib.auth.models import User

from experiments.display.plots import Axis, Interval
from experiments.reviews.agreement import measures
from experiments.reviews.agreement.measures import Figure
from experiments.reviews.agreement.ratings import LINES, VERDICT, RatedLine, Ratings

PAIRS = 45
"""Pairs of reviewers that a page shows: those with the most items in common."""
AXIS = Axis(-0.5, 1.0, 0, 1000)
"""What the plots show; what lies below is drawn at their left end."""


@dataclass(frozen=True)
class Measured:
    """A figure with its interval on the axis; None where there is no value."""

    figure: Figure
    interval: Interval | None


@dataclass(frozen=True)
class OfLine:
    line: RatedLine
    alpha: Measured
    fleiss: Measured


@dataclass(frozen=True)
class OfPair:
    one: User
    other: User
    kappa: Measured


@dataclass(frozen=True)
class OfReviewer:
    """`beside`: items that others rated too; `above`: how far the ratings lie above theirs on these, None for the
    verdict; `rest`: alpha of all but this reviewer."""

    reviewer: User
    items: int
    beside: int
    above: float | None
    rest: Figure


@dataclass(frozen=True)
class Summary:
    """`line` is the one that pairs and reviewers are measured by."""

    lines: Sequence[OfLine]
    line: RatedLine
    pairs: Sequence[OfPair]
    pairs_left_out: int
    reviewers: Sequence[OfReviewer]
    few: bool


def line_named(name: str) -> RatedLine:
    """The verdict for a name that there is not."""
    return next((line for line in LINES if line.name == name), LINES[0])


def summary(rated: Mapping[str, Ratings], people: Mapping[int, User], line: RatedLine) -> Summary:
    """Everything that the page shows of these ratings."""
    lines = [of_line(rated[each.name]) for each in LINES]
    chosen = rated[line.name]
    pairs = sorted(chosen.pairs(), key=lambda pair: -len(chosen.pair(*pair)[0]))
    shown = pairs[:PAIRS]
    return Summary(
        lines,
        line,
        [OfPair(people[a], people[b], place_figure(measures.cohen_kappa(chosen, a, b))) for a, b in shown],
        len(pairs) - len(shown),
        [summarize_reviewer(chosen, each, people[each]) for each in chosen.reviewers],
        any(each.figure.few for row in lines for each in (row.alpha, row.fleiss)),
    )


def of_line(rated: Ratings) -> OfLine:
    return OfLine(
        rated.line, place_figure(measures.krippendorff_alpha(rated)), place_figure(measures.fleiss_kappa(rated))
    )


def summarize_reviewer(rated: Ratings, key: int, reviewer: User) -> OfReviewer:
    own = rated.table[:, rated.reviewers.index(key)]
    others = rated.without(key)
    beside = ~np.isnan(own) & (~np.isnan(others.table)).any(axis=1)
    above = None
    if rated.line.name != VERDICT and beside.any():
        above = float(np.mean(own[beside] - np.nanmean(others.table[beside], axis=1)))
    rest = measures.krippendorff_alpha(others, with_interval=False)
    return OfReviewer(reviewer, int((~np.isnan(own)).sum()), int(beside.sum()), above, rest)


def place_figure(figure: Figure) -> Measured:
    return Measured(figure, None if figure.value is None else Interval.on(AXIS, figure.value, figure.low, figure.high))


TICKS = [AXIS.at(value) for value in (0.0, 0.667, 0.8, 1.0)]
"""Chance, and the bounds above which Krippendorff draws tentative and firm conclusions."""
