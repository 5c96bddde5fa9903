"""Distributions by group: bars that add up to n on an axis that holds them, nothing where there is nothing."""

from __future__ import annotations

import pytest

from experiments.display.plots import CountedGroup, draw_distributions


def test_without_a_value_nothing_is_drawn() -> None:
    assert draw_distributions([], 0.05, "Scores", "r") is None
    assert draw_distributions([CountedGroup("a", {}, 0.0, 0.0, 0.0)], 0.05, "Scores", "r") is None


@pytest.mark.parametrize("counts", [{19: 1}, {-20: 1, 19: 1}, {0: 10_000}, {3: 2, 4: 9_998}])
def test_bars_lie_within_the_drawing_and_the_fullest_is_highest(counts: dict[int, int]) -> None:
    plot = draw_distributions([CountedGroup("a", counts, 0.5, -1.0, 1.0)], 0.05, "Scores", "r")
    assert plot is not None
    assert all(plot.shape.left <= bar.x <= bar.x + bar.width <= plot.shape.edge for bar in plot.bars)
    heights = {int(bar.words.split(": ")[1].split(" ")[0].replace(",", "")): bar.height for bar in plot.bars}
    assert heights[max(counts.values())] == max(heights.values())
    assert all(height >= 1.5 for height in heights.values())
    assert f"n = {sum(counts.values()):,}" in plot.label


def test_the_table_has_what_the_bars_cannot_tell() -> None:
    plot = draw_distributions([CountedGroup("a", {10: 3}, 0.52, 0.5, 0.54, "/runs/")], 0.05, "Scores", "r")
    assert plot is not None
    assert plot.table is not None
    assert list(plot.table.rows) == [("a", 3, 0.52, 0.5, 0.54)]
    assert list(plot.table.links) == ["/runs/"]
