"""Preferences as a picture: each two sources once, the preferred one first."""

from __future__ import annotations

from experiments.pairwise.drawing import draw_preferences
from experiments.pairwise.results import PreferenceCell, Preferences, Proportion


def table(hits: int, n: int, low: float | None, high: float | None) -> Preferences:
    share = hits / n if n else None
    back = (None, None) if low is None or high is None else (1 - high, 1 - low)
    one = PreferenceCell("Agent", "People", Proportion(hits, n, share, low, high), 0, 0)
    other = PreferenceCell(
        "People", "Agent", Proportion(n - hits, n, None if share is None else 1 - share, *back), 0, 0
    )
    return Preferences(["Agent", "People"], [("Agent", [None, one]), ("People", [other, None])], n, n)


def test_the_preferred_one_is_named_first_with_its_share_and_interval() -> None:
    plot = draw_preferences(table(3, 10, 0.1, 0.6))
    assert plot is not None
    assert [dot.words for dot in plot.dots] == ["People over Agent: 0.70 (0.40 to 0.90), n = 10"]


def test_without_a_vote_that_decides_there_is_no_picture() -> None:
    assert draw_preferences(table(0, 0, None, None)) is None


def test_all_for_one_side_lies_at_the_end_of_the_axis() -> None:
    plot = draw_preferences(table(5, 5, 0.57, 1.0))
    assert plot is not None
    assert [dot.words for dot in plot.dots] == ["Agent over People: 1.00 (0.57 to 1.00), n = 5"]
