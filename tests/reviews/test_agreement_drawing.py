"""Agreement as pictures: each pair once, counts that add up, and nothing drawn where nothing is known."""

from __future__ import annotations

import numpy as np

from experiments.reviews.agreement.drawing import draw_lines, draw_opinions, draw_reviewers
from experiments.reviews.agreement.measures import AgreementEstimate, krippendorff_alpha
from experiments.reviews.agreement.ratings import LINES, Ratings
from workers.record.figures import EN_DASH

GAP = np.nan
VERDICT = LINES[0]


def rated(*rows: list[float]) -> Ratings:
    """From a row of verdicts for each reviewer: 0 accept, 1 revise, 2 reject."""
    return Ratings(VERDICT, np.array(rows, dtype=float).T, tuple(range(len(rows))))


NAMES = {0: "Ann", 1: "Ben", 2: "Cem"}


def test_each_two_reviewers_stand_once_with_kappa_and_n() -> None:
    plot = draw_reviewers(rated([0, 1, 2, 0], [0, 1, 2, 0], [0, 1, 1, GAP]), NAMES)
    assert plot is not None
    said = {bar.words: bar.text for bar in plot.bars}
    assert len(said) == 3
    assert said["Ben and Ann: kappa 1.00, n = 4 items"] == "1.00"
    assert sum("n = 3 items" in words for words in said) == 2


def test_a_pair_that_shares_too_little_says_so_and_has_no_colour() -> None:
    plot = draw_reviewers(rated([0, GAP, 1], [GAP, 2, 1], [1, 1, 1]), NAMES)
    assert plot is not None
    undefined = [bar for bar in plot.bars if "undefined" in bar.words]
    assert undefined
    assert {bar.text for bar in undefined} == {EN_DASH}
    assert {bar.kind for bar in undefined} == {"shade-none"}


def test_one_reviewer_or_none_has_no_heat_map() -> None:
    assert draw_reviewers(rated([0, 1]), NAMES) is None
    assert draw_reviewers(Ratings(VERDICT, np.zeros((0, 0)), ()), {}) is None


def test_pairs_of_opinions_are_counted_once_each() -> None:
    """Three opinions on the first item are three pairs, two on the second one pair, the third has none."""
    plot = draw_opinions(rated([0, 2, 1], [0, 1, GAP], [1, GAP, GAP]))
    assert plot is not None
    said = [bar.words for bar in plot.bars]
    assert "both Accept: 1 of 4 pairs of reviews (25%)" in said
    assert "Accept and Revise: 2 of 4 pairs of reviews (50%)" in said
    assert "Revise and Reject: 1 of 4 pairs of reviews (25%)" in said
    assert sum(int(bar.text) for bar in plot.bars) == 4


def test_without_two_opinions_on_an_item_nothing_met() -> None:
    assert draw_opinions(rated([0, GAP], [GAP, 1])) is None


def test_a_line_without_a_value_is_left_out_of_the_plot() -> None:
    known = krippendorff_alpha(rated([0, 1, 2], [0, 1, 2]))
    plot = draw_lines([(VERDICT, known), (LINES[1], AgreementEstimate(why="nothing"))])
    assert plot is not None
    assert [dot.words for dot in plot.dots] == ["Verdict: 1.00, n = 3"]
    assert draw_lines([(VERDICT, AgreementEstimate())]) is None
