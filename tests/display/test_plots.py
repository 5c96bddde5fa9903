"""The scale of a run's bars, and where the dots of its chart lie."""

from __future__ import annotations

import math

import pytest

from experiments.display.plots import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Scale, chart, nice


def test_the_scale_goes_from_zero_to_the_highest_activation_or_the_threshold() -> None:
    assert Scale.of([3.0, 12.0], None).view_box == "0 0 12 1"
    assert Scale.of([3.0], 20.0).view_box == "0 0 20 1"
    assert Scale.of([-2.0, 6.0], None).view_box == "-2 0 8 1"


@pytest.mark.parametrize("values", [[], [0.0], [None], [math.nan], [math.inf]])
def test_a_scale_of_nothing_is_still_a_scale(values: list[float | None]) -> None:
    assert Scale.of(values, None).view_box == "0 0 1 1"


@pytest.mark.parametrize(
    ("value", "expected"), [(0.03, 0.03), (0.033, 0.04), (23.1, 30), (1, 1), (36.9, 40), (101, 200), (0, 1)]
)
def test_the_axis_ends_at_a_round_number(value: float, expected: float) -> None:
    assert nice(value) == pytest.approx(expected)


def test_dots_lie_at_their_activation_in_the_column_of_their_round() -> None:
    drawn = chart([(1, 0.0, "a"), (1, 40.0, "b"), (4, 20.0, "c")], Scale(0.0, 40.0, 20.0))
    assert [dot.y for dot in drawn.dots] == [HEIGHT - BOTTOM, TOP, (TOP + HEIGHT - BOTTOM) / 2]
    assert drawn.dots[0].x == drawn.dots[1].x < drawn.dots[2].x
    assert [number for _, number in drawn.rounds] == [1, 4]
    assert drawn.threshold_y == drawn.dots[2].y
    assert [dot.strength for dot in drawn.dots] == ["weak", "strong", "strong"]


def test_equal_dots_stand_side_by_side_and_all_stay_inside() -> None:
    values = [(number, 10.0, "x") for number in range(1, 26) for _ in range(20)]
    drawn = chart(values, Scale(0.0, 10.0, None))
    assert len({dot.x for dot in chart(values[:5], Scale(0.0, 10.0, None)).dots}) == 5
    assert all(LEFT <= dot.x <= WIDTH - RIGHT for dot in drawn.dots)
    assert len(drawn.rounds) <= 9


def test_negative_activations_are_drawn_below_zero() -> None:
    drawn = chart([(1, -3.0, "a"), (1, 2.0, "b")], Scale(-3.0, 2.0, None))
    assert drawn.dots[0].y > drawn.dots[1].y
    assert drawn.ticks[0][1] == "-3"
