"""Draw a sweep: its layers as on the unit map, units coloured by the sweep's findings; the scores of its labels as
distributions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from django.utils.safestring import SafeString

from experiments.display.plots import CountedGroup, Plot, draw_distributions
from experiments.models import Layer, Sweep
from experiments.sweeps.lists import WORST, SweptRun
from experiments.sweeps.selection import list_units
from experiments.units.bands import CheckBand, FunctionBand, band_of, band_of_score
from experiments.units.colours import Colour
from experiments.units.drawing import Drawing, UnitSelection, network
from experiments.units.label_groups import LabelGroup
from experiments.units.lists import shorten_labels
from experiments.units.schemes import GroupColour, name_groups
from workers.record.figures import figure
from workers.record.statuses import Status


class RunColour(Colour):
    """The state of a unit's runs, the worst of them."""

    DONE = "swept-done", "Concluded", "its runs concluded"
    LIMITED = "swept-limited", "Limit reached", "a run reached a limit"
    RUNNING = "swept-running", "Under way", "a run has begun"
    FAILED = "swept-failed", "Failed", "a run failed"
    STOPPED = "swept-stopped", "Stopped or paused", "a run was stopped, is paused or waits for a person"
    QUEUED = "swept-queued", "To come", "no run has begun"


_OF_STATUS = {
    Status.CONCLUDED: RunColour.DONE,
    Status.LIMIT_REACHED: RunColour.LIMITED,
    Status.RUNNING: RunColour.RUNNING,
    Status.FAILED: RunColour.FAILED,
    Status.QUEUED: RunColour.QUEUED,
}
SCHEMES = {"status": "Run status", "check": "How right labels are", "label": "Similar labels"}
"""What units may be coloured by."""

Place = tuple[str, int]
"""Layer and unit."""


@dataclass(frozen=True)
class LegendEntry:
    """A colour, its words, and how many units have it."""

    colour: Colour
    words: str
    count: int


@dataclass(frozen=True)
class SweepMap:
    scheme: str
    layers: Sequence[tuple[Drawing, SafeString]]
    """Each with its links."""
    legend: Sequence[LegendEntry]


def draw_map(
    sweep: Sweep, layers: Sequence[Layer], runs: Sequence[SweptRun], groups: Sequence[LabelGroup], scheme: str
) -> SweepMap:
    """Draw all layers of the sweep; units that it does not ask about are faint. `scheme` is of `SCHEMES`."""
    # 1. The colour of each unit by its runs.
    by_place: dict[Place, list[SweptRun]] = {}
    for run in runs:
        by_place.setdefault((run.layer, run.unit), []).append(run)
    colour_of, rest = _choose_colours(scheme, groups, images=any(layer.takes_images for layer in layers))
    asked = {layer.name: list_units(sweep).get(layer.name, []) for layer in layers}
    known: dict[int, dict[int, Colour]] = {layer.pk: {} for layer in layers}
    for layer in layers:
        for number in asked[layer.name]:
            known[layer.pk][number] = colour_of(by_place.get((layer.name, number), ()))
    # 2. The drawing, with labels as titles.
    wanted = UnitSelection(found={layer.pk: set(asked[layer.name]) for layer in layers})
    drawings = network(layers, known, wanted, rest)
    titles = {layer.pk: layer.name for layer in layers}
    said = {
        (key, number): _describe(by_place.get((name, number), ()))
        for key, name in titles.items()
        for number in known[key]
    }
    # 3. The legend, without colours that do not occur.
    every = [colour for units in known.values() for colour in units.values()]
    words = name_groups(groups)
    legend = [
        LegendEntry(each, words.get(each) or each.words, count) for each in type(rest) if (count := every.count(each))
    ]
    return SweepMap(scheme, [(each, each.links(said)) for each in drawings], legend)


def _choose_colours(
    scheme: str, groups: Sequence[LabelGroup], *, images: bool
) -> tuple[Callable[[Iterable[SweptRun]], Colour], Colour]:
    """Return how a unit is coloured by its runs, and the colour of one without any."""
    if scheme == "check":
        return (_colour_by_check, CheckBand.NONE) if images else (_colour_by_score, FunctionBand.NONE)
    if scheme == "label":
        # Largest group last, so that it wins
        places = {run: place for place, group in reversed(list(enumerate(groups, 1))) for run in group.members}
        return lambda runs: _colour_by_group(runs, places), GroupColour.NONE
    return _colour_by_status, RunColour.QUEUED


def _colour_by_status(runs: Iterable[SweptRun]) -> Colour:
    worst = min((run.status for run in runs), key=WORST.index, default=Status.QUEUED)
    return _OF_STATUS.get(worst, RunColour.STOPPED)


def _colour_by_check(runs: Iterable[SweptRun]) -> Colour:
    best = max((run.r for run in runs if run.r is not None), default=None)
    return CheckBand.NONE if best is None else band_of(best)


def _colour_by_score(runs: Iterable[SweptRun]) -> Colour:
    # Keys of runs ascend in time
    newest = max((run for run in runs if run.score), key=lambda run: run.pk, default=None)
    return band_of_score(newest.score) if newest else FunctionBand.NONE


def _colour_by_group(runs: Iterable[SweptRun], places: Mapping[int, int]) -> Colour:
    place = min((places[run.pk] for run in runs if run.pk in places), default=None)
    return GroupColour.NONE if place is None else GroupColour.of_rank(place)


def _describe(runs: Iterable[SweptRun]) -> str:
    """Return the labels of a unit and r, in as few characters as a drawing has room for."""
    some = list(runs)
    label = shorten_labels([text for run in some for text in run.labels])
    best = max((run.r for run in some if run.r is not None), default=None)
    return " · ".join(filter(None, (label, "" if best is None else f"r {figure(best)}")))


# --- scores ---

BIN = 0.05
"""Width of a bin of r."""


def draw_scores(runs: Iterable[SweptRun]) -> Plot | None:
    """Draw the distribution of r of the labels, a row for each agent; None if no label was tested."""
    by_agent: dict[str, list[float]] = {}
    for run in runs:
        if run.r is not None:
            by_agent.setdefault(run.agent, []).append(run.r)
    groups = [
        CountedGroup(agent, Counter(map(_find_bin, known)), fmean(known), min(known), max(known))
        for agent, known in by_agent.items()
    ]
    return draw_distributions(groups, BIN, "r on unseen images, by agent", "r on unseen images")


def _find_bin(r: float) -> int:
    """Return the bin of r."""
    # The addend moves a bound that is not exact in binary into the bin above it; 1 itself is in the last bin
    return min(math.floor(r / BIN + 1e-9), round(1 / BIN) - 1)
