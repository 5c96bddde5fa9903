"""The scale of a run's bars, and where the dots of its chart lie."""

from __future__ import annotations

import math

import pytest

from experiments.display.plots import HALF, SMALL, Axis, Interval, Plot, Scale, activation_plot, round_step


def test_the_scale_goes_from_zero_to_the_highest_activation_or_the_exemplar_mean() -> None:
    assert Scale.of([3.0, 12.0], None).view_box == "0 0 12 1"
    assert Scale.of([3.0], 20.0).view_box == "0 0 20 1"
    assert Scale.of([-2.0, 6.0], None).view_box == "-2 0 8 1"


@pytest.mark.parametrize("values", [[], [0.0], [None], [math.nan], [math.inf]])
def test_a_scale_of_nothing_is_still_a_scale(values: list[float | None]) -> None:
    assert Scale.of(values, None).view_box == "0 0 1 1"


@pytest.mark.parametrize(("value", "expected"), [(0.03, 0.05), (0.011, 0.02), (23.1, 50), (1, 1), (101, 200), (0, 1)])
def test_steps_are_round(value: float, expected: float) -> None:
    assert round_step(value) == pytest.approx(expected)


def test_an_axis_holds_what_lies_outside_at_its_ends() -> None:
    axis = Axis(-0.5, 1.0, 0, 1000)
    assert [axis.at(value) for value in (-9.0, -0.5, 0.25, 1.0, 2.0)] == [0, 0, 500, 1000, 1000]
    assert axis.round_values == [-0.5, 0.0, 0.5, 1.0]
    assert Interval.on(axis, 0.25, -2.0, None) == Interval(500, 0, None)


def test_dots_lie_at_their_activation_in_the_column_of_their_round() -> None:
    drawn = activation_plot([(1, 0.0, "a"), (1, 40.0, "b"), (4, 20.0, "c")], Scale(0.0, 40.0, 20.0))
    assert [dot.y for dot in drawn.dots] == [SMALL.top, SMALL.floor, (SMALL.top + SMALL.floor) / 2]
    assert drawn.dots[0].x == drawn.dots[1].x < drawn.dots[2].x
    assert {"round 1", "round 4"} <= {text.words for text in drawn.texts}
    assert [line.y1 for line in drawn.lines] == [drawn.dots[2].y]
    assert [dot.kind for dot in drawn.dots] == ["strong", "weak", "strong"]
    assert drawn.dots[2].link == "#round-4"


def test_equal_dots_stand_side_by_side_and_all_stay_inside() -> None:
    values = [(number, 10.0, "x") for number in range(1, 26) for _ in range(20)]
    scale = Scale(0.0, 10.0, None)
    assert len({dot.x for dot in activation_plot(values[:5], scale).dots}) == 5
    drawn = activation_plot(values, scale)
    assert all(SMALL.left <= dot.x <= SMALL.edge for dot in drawn.dots)
    named = [text for text in drawn.texts if text.anchor == "middle"]
    assert 2 <= len(named) <= 9


def test_negative_activations_are_drawn_below_zero() -> None:
    drawn = activation_plot([(1, -3.0, "a"), (1, 2.0, "b")], Scale(-3.0, 2.0, None))
    weak = next(dot for dot in drawn.dots if dot.words.startswith("a:"))
    assert weak.y == max(dot.y for dot in drawn.dots) > drawn.y.at(0.0)
    assert drawn.texts[0].words == "\N{MINUS SIGN}3"


def test_bars_lines_and_marks_lie_where_their_values_are() -> None:
    drawn = Plot.of_columns(["1", "2"], [30.0, 12.0], "Tokens", HALF)
    drawn.add_bar(0.15, 0.85, 0, 30.0, "part", "30")
    drawn.add_bar(1.15, 1.85, 0, 12.0, "part", "12")
    tall, short = drawn.bars
    assert tall.y + tall.height == short.y + short.height == HALF.floor
    assert tall.height == pytest.approx(2.5 * short.height, abs=0.2)
    drawn.draw_sums([30.0, 42.0])
    assert drawn.points.split()[0] == f"{float(HALF.left)},{float(HALF.floor)}"
    drawn.draw_steps([None, 12.0])
    assert [point.split(",")[1] for point in drawn.points.split()] == [str(short.y)] * 2
    drawn.add_mark(1.5, 12.0, 30.0, "edited", "two", "#")
    assert (drawn.dots[0].y, drawn.dots[0].foot) == (tall.y, short.y)
