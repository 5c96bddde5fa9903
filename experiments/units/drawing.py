"""Draw layers of units as geometry: one square for each unit, one path for each state; and the histogram of a
unit's activations over a dataset.

The output grows with the number of ranges of equal state, not with that of units. Only the few units that were
asked about are links.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from experiments.display.plots import Axis, Plot, PlotShape
from experiments.models import Layer
from experiments.units.bands import CheckBand
from experiments.units.colours import Colour
from experiments.units.schemes import GroupColour
from experiments.units.states import UnitState
from workers.record.figures import figure

TALLEST = 64
"""Maximum units in a column."""
PITCHES = ((400, 18), (1500, 13), (6000, 9))
"""Maximum units of a model -> pixels for each; larger models use the smallest."""
MIN_PITCH = 7
LINKED = 400
"""Maximum units of a drawing that are links."""


QUIET: frozenset[Colour] = frozenset({UnitState.NEW, UnitState.DEAD, CheckBand.NONE, GroupColour.NONE})
"""Colours of units that were not asked about: they are not links."""


@dataclass(frozen=True)
class Drawing:
    """One layer. `areas` are (state, path) pairs; `faint` covers units that the filter or the search excludes."""

    layer: Layer
    url: str
    rows: int
    pitch: int
    areas: Sequence[tuple[Colour, str]]
    faint: str
    cells: Sequence[tuple[int, Colour]]
    """Units that are links."""
    matches: int | None
    """Units that the search found; None without a search."""

    @property
    def columns(self) -> int:
        return math.ceil(self.layer.units / self.rows)

    @property
    def width(self) -> int:
        return self.columns * self.pitch

    @property
    def height(self) -> int:
        return self.rows * self.pitch

    def links(self, titles: Mapping[tuple[int, int], str]) -> SafeString:
        """Return the units that were asked about, each a square that links to its page, with its labels as title."""
        side, url, parts = self.pitch, escape(self.url), []
        for number, state in self.cells:
            known = (titles.get((self.layer.pk, number), ""), self.layer.name_of(number))
            words = "".join(f"{each} · " for each in known if each)
            parts.append(
                f'<a href="{url}{number}/"><rect x="{number // self.rows * side}" y="{number % self.rows * side}" '
                f'width="{side}" height="{side}"/>'
                f"<title>{escape(words)}unit {number}, {state.words.lower()}</title></a>"
            )
        return mark_safe("".join(parts))  # noqa: S308 - names and labels are escaped


@dataclass(frozen=True)
class UnitSelection:
    """What a reader asked to see: units in one state, units that a search found; None for all."""

    state: Colour | None = None
    found: Mapping[int, Collection[int]] | None = None

    def has(self, layer: int, number: int, state: Colour) -> bool:
        in_state = self.state is None or state == self.state
        return in_state and (self.found is None or number in self.found.get(layer, ()))


def network(
    layers: Sequence[Layer], known: Mapping[int, Mapping[int, Colour]], wanted: UnitSelection, rest: Colour
) -> list[Drawing]:
    """Draw all layers of a model to one scale; `rest` is the colour of units that are not in `known`."""
    units = sum(layer.units for layer in layers)
    # One scale for all layers, so that their sizes can be compared.
    pitch = next((pitch for most, pitch in PITCHES if units <= most), MIN_PITCH)
    # The layers share one allowance of links, the first layers first.
    left = LINKED
    drawings = []
    for layer in layers:
        drawings.append(_draw(layer, known[layer.pk], wanted, pitch, left, rest))
        left -= len(drawings[-1].cells)
    return drawings


def _draw(
    layer: Layer, known: Mapping[int, Colour], wanted: UnitSelection, pitch: int, links: int, rest: Colour
) -> Drawing:
    # About four times as tall as wide, a power of two; at least 4, at most TALLEST.
    rows = min(TALLEST, max(4, 2 ** round(math.log2(max(layer.units, 1)) / 2 + 1)))
    # 1. The colour of every unit; None for those that the filter excludes.
    everything = [known.get(number, rest) for number in range(layer.units)]
    shown = [state if wanted.has(layer.pk, n, state) else None for n, state in enumerate(everything)]
    # 2. One path for each colour that occurs.
    areas = [(state, _draw_squares(shown, state, rows, pitch)) for state in type(rest) if state in shown]
    # 3. Links, as many as the whole drawing may still have.
    visible = [(n, state) for n, state in enumerate(shown) if state]
    # After a search, every unit that it found is a link.
    asked = [each for each in visible if wanted.found or each[1] not in QUIET]
    url = reverse("units-layer", args=[layer.model.name, layer.name])
    matches = None if wanted.found is None else len(wanted.found.get(layer.pk, ()))
    return Drawing(
        layer, url, rows, pitch, areas, _draw_squares(shown, None, rows, pitch), asked[: max(links, 0)], matches
    )


def _draw_squares(states: Sequence[Colour | None], wanted: Colour | None, rows: int, pitch: int) -> str:
    """Return the squares of all units in a state, column by column, as an SVG path."""
    columns = (states[start : start + rows] for start in range(0, len(states), rows))
    return "".join(
        f"M{column * pitch} {top * pitch}h{pitch}v{length * pitch}h-{pitch}z"
        for column, part in enumerate(columns)
        for top, length in _runs_of(part, wanted)
    )


def _runs_of(states: Sequence[Colour | None], wanted: Colour | None) -> Iterator[tuple[int, int]]:
    """Yield consecutive units in a state: the first, and how many."""
    place = 0
    for state, group in groupby(states):
        length = len(list(group))
        if state == wanted:
            yield place, length
        place += length


def links(
    layer: Layer, known: Mapping[int, Colour], wanted: UnitSelection, labels: Mapping[int, str], rest: Colour
) -> SafeString:
    """Return every unit of one layer as a link with its number or name."""
    # Not a template: that takes ten times as long for thousands of links.
    parts = []
    for number in range(layer.units):
        state = known.get(number, rest)
        if wanted.has(layer.pk, number, state):
            title = f' title="{escape(labels[number])}"' if labels.get(number) else ""
            name = escape(layer.name_of(number)) or number
            parts.append(f'<a href="{number}/" class="{state}"{title}>{name}</a>')
    return mark_safe("".join(parts))  # noqa: S308 - names and labels are escaped


# --- one unit ---------------------------------------------------------------------------------------

SHAPE = PlotShape(560, 180, 40, 12, 34, 24)
GAP = 0.07
"""Share of a bar's room that stays free."""


def distribution(histogram: dict[str, Any], exemplar_mean: float | None, quantile: float | None) -> Plot | None:
    """Plot the histogram of a profile; None if there is none."""
    counts, start, width = histogram.get("counts") or [], histogram.get("start", 0.0), histogram.get("width", 0.0)
    # The axis includes both thresholds, which may lie beyond the histogram.
    known = [value for value in (exemplar_mean, quantile) if value is not None]
    low, high = min([start, *known]), max([start + width * len(counts), *known])
    if not counts or not math.isfinite(high - low) or high <= low:
        return None
    # Heights are logarithmic, since most images leave most units near 0.
    x, y = Axis(low, high, SHAPE.left, SHAPE.edge), Axis(0, math.log10(1 + max(counts)), SHAPE.floor, SHAPE.top)
    plot = Plot(SHAPE, x, y, f"Activations of {sum(counts)} image{'s' * (sum(counts) != 1)}")
    # Grid lines at powers of ten, at most four.
    powers = [10**power for power in range(int(math.log10(max(counts))) + 1)]
    for count in powers[:: math.ceil(len(powers) / 4)]:
        plot.add_across(math.log10(1 + count), f"{count:,}")
    for value in x.round_values:
        plot.add_below(value, f"{value:g}")
    for place, count in enumerate(counts):
        if count:
            # Bars are drawn a little narrower than their bin, so that they stay apart.
            left, right = start + place * width, start + (place + 1) * width
            # By the right edge: the bar that contains the threshold counts as strong.
            kind = "strong" if exemplar_mean is not None and right > exemplar_mean else "weak"
            words = f"{count:,} image{'s' * (count != 1)} from {figure(left)} to {figure(right)}"
            plot.add_bar(left, right - GAP * width, 0, math.log10(1 + count), kind, words)
    named = (("exemplar threshold", exemplar_mean, "mean"), ("mask threshold", quantile, "quantile"))
    for row, (words, at, kind) in enumerate(named):
        if at is not None:
            plot.label += f"; {words} {figure(at)}"
            plot.add_upright(at, f"{words} {figure(at)}", row, f"upright {kind}")
    return plot
