"""The kinds of plots: what lies where, what is said of it, and how it becomes HTML."""

from __future__ import annotations

import itertools
import math
import random
import re

from django.template.loader import render_to_string

from experiments.display.plots import (
    BarSeries,
    IntervalRow,
    Level,
    LineSeries,
    MatrixCell,
    Plot,
    PlotValue,
    ValueGroup,
    WaterfallRow,
    WaterfallSpan,
    draw_bars,
    draw_columns,
    draw_groups,
    draw_intervals,
    draw_lines,
    draw_matrix,
    draw_waterfall,
    fit_axis,
)
from experiments.display.plots.stacking import stack_dots


def group(name: str, *values: float) -> ValueGroup:
    return ValueGroup(name, "with", [PlotValue(each, f"image {each:g}", "/there/", "/thumb.webp") for each in values])


def render(plot: Plot | None) -> str:
    assert plot
    return render_to_string("display/plot.html", {"plot": plot})


def test_an_axis_ends_at_ticks_and_a_little_below_zero_gets_no_step_of_its_own() -> None:
    axis = fit_axis([0.0, -0.6, 24.7], 0, 100)
    assert (axis.low, axis.high) == (-0.6, 25.0)
    assert axis.round_values == [0.0, 5.0, 10.0, 15.0, 20.0, 25.0]
    for high in (0.013, 1.02, 6.9, 7.0, 139.0, 24.7):
        axis = fit_axis([0.0, high], 0, 100)
        assert axis.high >= high
        assert math.isclose(axis.round_values[-1], axis.high)
        assert 3 <= len(axis.round_values) <= 9


def test_stacked_dots_never_overlap_and_stay_near_their_values() -> None:
    pixels = [random.Random(seed).uniform(0, 300) for seed in range(400)]
    placed: list[tuple[float, float]] = []
    count = 0
    for stack in stack_dots(pixels, 60.0, 6.0):
        count += stack.count
        for place, aside in stack.places:
            assert abs(stack.along - pixels[place]) <= 6.0
            assert abs(aside) <= 30.0
            placed.append((stack.along, aside))
    assert count == len(pixels)
    assert all(math.dist(one, other) >= 5.9 for one, other in itertools.combinations(placed, 2))


def test_groups_say_mean_n_and_effect_size() -> None:
    plot = draw_groups(
        [group("Shows it", 8.0, 9.0, 10.0), group("Does not", 0.0, 1.0)],
        "Activations",
        "Activation",
        level=Level(7.0, "exemplar threshold"),
        compares=True,
    )
    html = render(plot)
    assert "mean 9.00 · n = 3" in html
    assert "AUC 1.00" in html
    assert "Cohen&#x27;s d" in html
    assert draw_groups([group("Nothing")], "", "") is None


def test_a_pile_without_room_says_how_many_it_holds() -> None:
    plot = draw_groups([group("Zeros", *[0.0] * 40, 5.0)], "Activations", "Activation")
    assert plot
    assert any(text.words.endswith(" 40") for text in plot.texts)
    assert any("more like it" in dot.words for dot in plot.dots)


def test_the_count_of_a_pile_stays_on_the_drawing_and_off_the_words_over_it() -> None:
    plot = draw_groups([group("Both", *[0.0] * 40, *[5.0] * 40)], "Activations", "Activation")
    assert plot
    low, high = (text for text in plot.texts if text.kind == "pile")
    name = next(text for text in plot.texts if text.kind == "name")
    assert (low.anchor, high.anchor) == ("start", "end")
    assert low.x < high.x <= plot.shape.edge
    assert low.y - name.y > 20


def test_a_strip_that_is_thinned_says_so_and_counts_all() -> None:
    plot = draw_groups([group("Many", *[float(each) for each in range(50)])], "Activations", "Activation", most=10)
    assert plot
    assert len(plot.dots) == 10
    assert "10 dots are shown" in plot.note
    assert plot.table
    assert plot.table.rows[0][:3] == ("Many", 50, 24.5)


def test_every_mark_is_reached_by_keys_and_only_the_first_by_tab() -> None:
    html = render(draw_columns([group("a", 1.0, 2.0), group("b", 3.0)], "Two", "Agent", "r"))
    assert re.findall(r'<a class="spot with" href="/there/" tabindex="(-?\d)" data-picture="/thumb.webp">', html) == [
        "0",
        "-1",
        "-1",
    ]
    assert 'role="group"' in html
    assert html.count("Show as table") == 1


def test_intervals_are_sorted_and_stand_in_the_table() -> None:
    plot = draw_intervals([IntervalRow("low", 0.1, 0.0, 0.2, 9), IntervalRow("high", 0.8, 0.7, 0.9, 7)], "Bias", "p")
    assert plot
    assert [dot.words for dot in plot.dots] == ["high: 0.80 (0.70 to 0.90), n = 7", "low: 0.10 (0.00 to 0.20), n = 9"]
    assert plot.table
    assert plot.table.rows[0] == ("high", 0.8, "0.70 to 0.90", 7)


def test_stacked_bars_add_up_and_lines_have_gaps() -> None:
    bars = draw_bars(["1", "2"], [BarSeries("a", "part-0", [2, 0]), BarSeries("b", "part-1", [1, 3])], "Runs", "", "")
    first, second, third = bars.bars
    assert second.y + second.height == first.y
    assert third.height == first.height + second.height
    lines = draw_lines(["1", "2", "3"], [LineSeries("a", "part-0", [1.0, None, 2.0])], "Scores", "", "")
    assert len(lines.paths) == len(lines.dots) == 2


def test_a_waterfall_and_a_matrix_say_each_part() -> None:
    spans = [WaterfallSpan(0, 30, "part-0", "Reply, 30 s"), WaterfallSpan(30, 90, "part-1", "Tools, 60 s", "/e/")]
    html = render(
        draw_waterfall([WaterfallRow("Round 1", spans)], "Time", "Time", [("part-0", "reply")], "{:g} s".format, str)
    )
    assert "Reply, 30 s" in html
    assert 'href="/e/"' in html
    matrix = draw_matrix(["A"], ["B", "C"], [[MatrixCell(1.0, "9", "A and B: 9"), None]], "Pairs", "with", "who")
    assert [bar.kind for bar in matrix.bars] == ["shade-5"]
    assert "A and B: 9" in render(matrix)


def test_words_of_a_mark_are_escaped() -> None:
    html = render(draw_groups([ValueGroup("<b>", "with", [PlotValue(1.0, "<script>", '/a"b', "")])], "x", "y"))
    assert "<script>" not in html
    assert "<b>" not in html
