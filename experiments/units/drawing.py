"""Layers of units as geometry: one square for each unit, the units of a state one path. What comes out grows with the
number of stretches of equal state, not with that of units; links stand on the few units that somebody asked about.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from experiments.models import Layer
from experiments.units.states import States, UnitState

TALLEST = 64
"""Units in a column, at most."""
PITCHES = ((400, 18), (1500, 13), (6000, 9))
"""Units of a model up to which so many pixels are taken for each; of more, the least."""
LEAST_PITCH = 7
LINKED = 400
"""Units of a drawing that are links of their own."""


@dataclass(frozen=True)
class UnitCell:
    """A unit that is a link."""

    number: int
    x: int
    y: int
    state: UnitState


@dataclass(frozen=True)
class Drawing:
    """One layer. `areas` are (state, path) pairs; `faint` is where the filter or the search leaves units out."""

    layer: Layer
    url: str
    rows: int
    pitch: int
    areas: Sequence[tuple[UnitState, str]]
    faint: str
    cells: Sequence[UnitCell]
    matches: int | None
    """Units that are searched for; None without a search."""

    @property
    def columns(self) -> int:
        return math.ceil(self.layer.units / self.rows)

    @property
    def width(self) -> int:
        return self.columns * self.pitch

    @property
    def height(self) -> int:
        return self.rows * self.pitch


@dataclass(frozen=True)
class UnitSelection:
    """What a reader asked to see: units in one state, units that a search found; None for all."""

    state: UnitState | None = None
    found: Mapping[int, Collection[int]] | None = None

    def has(self, layer: int, number: int, state: UnitState) -> bool:
        in_state = self.state is None or state == self.state
        return in_state and (self.found is None or number in self.found.get(layer, ()))


def network(layers: Sequence[Layer], known: States, wanted: UnitSelection) -> list[Drawing]:
    """All layers of a model, drawn to one measure."""
    units = sum(layer.units for layer in layers)
    pitch = next((pitch for most, pitch in PITCHES if units <= most), LEAST_PITCH)
    left = LINKED
    drawings = []
    for layer in layers:
        drawings.append(draw(layer, known[layer.pk], wanted, pitch, left))
        left -= len(drawings[-1].cells)
    return drawings


def draw(layer: Layer, known: Mapping[int, UnitState], wanted: UnitSelection, pitch: int, links: int) -> Drawing:
    rows = min(TALLEST, max(4, 2 ** round(math.log2(max(layer.units, 1)) / 2 + 1)))
    everything = [known.get(number, UnitState.NEW) for number in range(layer.units)]
    shown = [state if wanted.has(layer.pk, n, state) else None for n, state in enumerate(everything)]
    areas = [(state, stretches(shown, state, rows, pitch)) for state in UnitState if state in shown]
    asked = [
        n for n, state in enumerate(shown) if state and (state not in (UnitState.NEW, UnitState.DEAD) or wanted.found)
    ]
    cells = [UnitCell(n, n // rows * pitch, n % rows * pitch, everything[n]) for n in asked[: max(links, 0)]]
    url = reverse("units-layer", args=[layer.model.name, layer.name])
    matches = None if wanted.found is None else len(wanted.found.get(layer.pk, ()))
    return Drawing(layer, url, rows, pitch, areas, stretches(shown, None, rows, pitch), cells, matches)


def stretches(states: Sequence[UnitState | None], wanted: UnitState | None, rows: int, pitch: int) -> str:
    """The squares of all units in a state, column by column, as the path of an SVG."""
    columns = (states[start : start + rows] for start in range(0, len(states), rows))
    return "".join(
        f"M{column * pitch} {top * pitch}h{pitch}v{length * pitch}h-{pitch}z"
        for column, part in enumerate(columns)
        for top, length in runs_of(part, wanted)
    )


def runs_of(states: Sequence[UnitState | None], wanted: UnitState | None) -> Iterator[tuple[int, int]]:
    """Where units in a state stand one after the other: first, and how many."""
    place = 0
    for state, group in groupby(states):
        length = len(list(group))
        if state == wanted:
            yield place, length
        place += length


def links(layer: Layer, known: Mapping[int, UnitState], wanted: UnitSelection, labels: Mapping[int, str]) -> SafeString:
    """Every unit of one layer as a link with its number, or its name; built here, since a template takes ten times as
    long for thousands."""
    return mark_safe(  # noqa: S308 - names and labels are escaped
        "".join(
            f'<a href="{number}/" class="{state}"{draw_title(labels.get(number))}>{name_unit(layer, number)}</a>'
            for number in range(layer.units)
            if wanted.has(layer.pk, number, state := known.get(number, UnitState.NEW))
        )
    )


def name_unit(layer: Layer, number: int) -> str:
    return escape(layer.name_of(number)) or str(number)


def draw_title(label: str | None) -> str:
    return f' title="{escape(label)}"' if label else ""
