"""Plots of agreement: alpha per criterion with its interval, kappa of each pair of reviewers, and pairs of ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.display.plots import IntervalRow, MatrixCell, Plot, draw_intervals, draw_matrix
from experiments.models import ReviewVerdict
from experiments.reviews.agreement.measures import MIN_INTERVAL_ITEMS, AgreementEstimate, cohen_kappa
from experiments.reviews.agreement.ratings import VERDICT, RatedLine, Ratings
from workers.record.figures import EN_DASH, MINUS, figure

MAX_REVIEWERS = 20
"""Reviewers in the heat map: those with the most items."""
TENTATIVE = 0.667
"""Alpha above which Krippendorff draws tentative conclusions."""


def draw_lines(rows: Sequence[tuple[RatedLine, AgreementEstimate]]) -> Plot | None:
    """Plot Krippendorff's alpha by criterion. None if it is undefined for all."""
    known = [
        IntervalRow(line.words, found.value, found.low, found.high, found.n)
        for line, found in rows
        if found.value is not None
    ]
    title = "Krippendorff's alpha (1: full agreement, 0: chance)"
    return draw_intervals(known, "Krippendorff's alpha by criterion", title, level=TENTATIVE, sorts=False)


def draw_reviewers(rated: Ratings, names: Mapping[int, str]) -> Plot | None:
    """Plot Cohen's kappa of each pair among the reviewers with the most items.

    A cell has no colour if the two share too few items. None with fewer than two reviewers.
    """
    # NaN compares as false, so missing ratings are not counted.
    items = {each: int((rated.table[:, place] >= 0).sum()) for place, each in enumerate(rated.reviewers)}
    shown = sorted(rated.reviewers, key=lambda each: (-items[each], names[each]))[:MAX_REVIEWERS]
    if len(shown) < 2:
        return None
    called = [names[each] for each in shown]
    cells = [
        # Kappa is symmetric: half of the matrix says all.
        [_pair_cell(rated, one, other, names) if place < row else None for place, other in enumerate(shown[:-1])]
        for row, one in enumerate(shown)
    ]
    label = f"Cohen's kappa of each two of {len(shown)} reviewers: {rated.line.words}"
    return draw_matrix(called[1:], called[:-1], cells[1:], label, "Cohen's kappa", "")


def _pair_cell(rated: Ratings, one: int, other: int, names: Mapping[int, str]) -> MatrixCell:
    found = cohen_kappa(rated, one, other, with_interval=False)
    who = f"{names[one]} and {names[other]}"
    if found.value is None:
        return MatrixCell(None, EN_DASH, f"{who}: undefined, {found.n} items in common. {found.why}")
    words = f"{who}: kappa {figure(found.value)}, n = {found.n:,} items"
    text = f"{found.value:.2f}".replace("-", MINUS)
    return MatrixCell(found.value if found.n >= MIN_INTERVAL_ITEMS else None, text, words)


def draw_opinions(rated: Ratings) -> Plot | None:
    """Plot how often two reviews of one item gave which ratings; equal ratings are on the diagonal. None if there
    are no pairs."""
    counts, names = rated.counts, _name_values(rated.line)
    # On its diagonal, `met` also counts each review with itself, so `same` counts pairs of equal ratings
    met = counts.T @ counts
    same = (counts * (counts - 1) // 2).sum(axis=0)
    size = range(len(names))
    pairs = [[int(same[row] if row == column else met[row, column]) for column in size] for row in size]
    total = sum(pairs[row][column] for row in size for column in range(row + 1))
    if not total:
        return None
    cells = [
        [
            _build_cell(pairs[row][column], total, names[row], names[column]) if column <= row else None
            for column in size
        ]
        for row in size
    ]
    label = f"{total:,} pairs of reviews of one item: {rated.line.words}"
    return draw_matrix(names, names, cells, label, "Pairs of reviews", "")


def _build_cell(count: int, total: int, one: str, other: str) -> MatrixCell:
    what = f"both {one}" if one == other else f"{other} and {one}"
    words = f"{what}: {count:,} of {total:,} pairs of reviews ({count / total:.0%})"
    return MatrixCell(count / total, f"{count:,}", words)


def _name_values(line: RatedLine) -> list[str]:
    """Return the name of each value of a criterion."""
    return list(ReviewVerdict.labels) if line.name == VERDICT else [str(value) for value in line.values]
