"""Draw distributions of two or more groups: strips of dots on a shared axis, with mean, n and effect size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from experiments.display.effect_sizes import bound_mean, describe_effect
from experiments.display.plots.axes import Axis, fit_axis
from experiments.display.plots.dots import ValueGroup, summarize_groups
from experiments.display.plots.geometry import TIMES, Plot, PlotLine, PlotShape, Text
from experiments.display.plots.stacking import DotStack, stack_dots
from workers.record.figures import figure

WIDTH, HEAD, STRIP = 560, 24, 38
"""Size of the drawing in pixels: width, and heights of a strip's text and of its dots."""
SIZES = ((60, 6.0, ""), (150, 5.0, " fine"), (math.inf, 4.0, " finest"))
"""Maximum dots of a strip -> their width and style."""
PILE_CHAR, PILE_HEIGHT = 9, 8
"""Room for a character of a stack's count, as large as on a phone."""
NAME_CHARS = 38
MAX_DOTS = 600
"""Maximum dots of a strip; of more, this many at equal steps in sorted order, including the extremes."""


@dataclass(frozen=True)
class Level:
    """A value with which all groups are compared."""

    value: float
    name: str


def draw_groups(
    groups: Sequence[ValueGroup],
    label: str,
    x_title: str,
    *,
    level: Level | None = None,
    compares: bool = False,
    span: tuple[float, float] | None = None,
    bounds: bool = False,
    within: tuple[float, float] | None = None,
    most: int = MAX_DOTS,
) -> Plot | None:
    """Draw the groups that have values; None if none does.

    `compares`: text that compares the first of the last two groups with the last. `span`: the range that the axis
    must include, so that plots can be compared. `bounds`: draws the 95 % interval of each mean, of values `within`
    two ends if they have some. `most`: maximum dots of a strip.
    """
    shown = [each for each in groups if each.numbers]
    if not shown:
        return None
    top = 20 if level else 6
    shape = PlotShape(WIDTH, top + (HEAD + STRIP) * len(shown) + 38, 8, 12, top, 38)
    # The axis includes the level, which may lie beyond all values.
    values = [value for each in shown for value in each.numbers] + list(span or ()) + ([level.value] if level else [])
    x = fit_axis(values, shape.left, shape.edge)
    plot = Plot(shape, x, Axis(0, len(shown), shape.top, shape.floor), label, "groups")
    plot.name_axes(x_title)
    plot.add_ticks_below()
    if level:
        plot.add_upright(level.value, f"{level.name} {figure(level.value)}", 0, "upright")
    for row, each in enumerate(shown):
        _draw_strip(plot, each, shape.top + (HEAD + STRIP) * row, most)
        if bounds and (ends := bound_mean(each.numbers, within)):
            y = shape.top + (HEAD + STRIP) * row + HEAD + STRIP / 2
            plot.lines.append(PlotLine(x.at(ends[0]), x.at(ends[1]), y, y, "bound"))
        plot.label += f"; {each.name}: {each.summary}"
    if compares and len(shown) > 1:
        plot.note = describe_effect(shown[-2].numbers, shown[-1].numbers)
    if any(len(each.values) > most for each in shown):
        thinned = f"of larger groups {most} dots are shown, means and effect sizes are of all"
        plot.note = f"{plot.note} · {thinned}" if plot.note else thinned.capitalize()
    plot.table = summarize_groups(shown, "Group")
    return plot


def _draw_strip(plot: Plot, group: ValueGroup, top: float, most: int) -> None:
    name = group.name if len(group.name) <= NAME_CHARS else f"{group.name[: NAME_CHARS - 1]}…"
    plot.texts.append(Text(plot.shape.left, top + HEAD - 9, name, "start", "name"))
    plot.texts.append(Text(plot.shape.edge, top + HEAD - 9, group.summary, "end", "figures"))
    _draw_dots(plot, group, top + HEAD + STRIP / 2, most)
    if group.mean is not None:
        at = plot.x.at(group.mean)
        plot.lines.append(PlotLine(at, at, top + HEAD, top + HEAD + STRIP, f"mean {group.kind}"))


def _draw_dots(plot: Plot, group: ValueGroup, middle: float, most: int) -> None:
    # Highest first: the first mark that the keyboard reaches is the strongest.
    values = sorted(group.values, key=lambda each: -each.value)
    is_whole = len(values) <= most
    if not is_whole:
        # Places from the first to the last: both extremes are drawn.
        step = (len(values) - 1) / (most - 1)
        values = [values[round(place * step)] for place in range(most)]
    size, look = next((size, look) for up_to, size, look in SIZES if len(values) <= up_to)
    stacks = list(stack_dots([plot.x.at(each.value) for each in values], STRIP, size))
    for stack in stacks:
        for place, aside in stack.places:
            each = values[place]
            more = (
                f"; and {stack.more} more like it" if is_whole and stack.more and place == stack.places[-1][0] else ""
            )
            y = round(middle + aside, 1)
            plot.add_dot(stack.along, y, group.kind + look, each.words + more, each.link, each.picture)
    if is_whole:
        plot.texts += _name_piles(stacks, middle + STRIP / 2 - 3, size)


def _name_piles(stacks: Sequence[DotStack], y: float, size: float) -> list[Text]:
    """Label each stack that has no room for all its dots with their number.

    Labels are at the bottom of the strip, away from the text above it, behind dots that reach that far down, and on
    the side with room. Of stacks too close together, only the first gets one.
    """
    found: list[Text] = []
    high = [each.along for each in stacks if len(each.places) * size > STRIP - 2 * PILE_HEIGHT]
    # Where the last label ends.
    told = -math.inf
    for stack in stacks:
        words = f"{TIMES} {stack.count}"
        room = PILE_CHAR * len(words)
        at = _step_past((each for each in high if each > stack.along), stack.along + size, room, size)
        if not stack.more or stack.along < told:
            continue
        if at + room <= WIDTH:
            found.append(Text(at, y, words, "start", "pile"))
            told = at + room
        else:
            before = (-each for each in reversed(high) if each < stack.along)
            at = -_step_past(before, size - stack.along, room, size)
            found.append(Text(at, y, words, "end", "pile"))
            # A label at the left of its stack may cover those that follow: none of them gets one.
            told = math.inf
    return found


def _step_past(stacks: Iterable[float], start: float, room: float, size: float) -> float:
    """Return the first place from `start` on with this much room between stacks."""
    at = start
    for each in stacks:
        if each - size > at + room:
            break
        at = each + size
    return at
