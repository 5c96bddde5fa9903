"""Choose the units of a sweep: once, before it starts, and kept unchanged.

Every way of choosing gives layers of one model with numbers of units. Units that the user is to judge blind look as if
there were no runs on them, as on the unit map.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from experiments.core.errors import InvalidInput
from experiments.core.system_names import SystemNameMasker
from experiments.models import LabelCheck, Layer, Sweep
from experiments.models.evaluation import DEVELOPMENT
from experiments.models.stored import Selection
from experiments.sweeps.unit_list import read_unit_list
from experiments.units import lists as unit_lists
from experiments.units.bands import CheckBand, find_bands
from experiments.units.states import UnitState, states
from experiments.units.unit_ranges import format_ranges, read_stretches

MAX_UNITS = 100_000
"""Units of one sweep."""
GOOD = 0.5
"""Default r of a label's check from which the label is good."""


class SelectionKind(StrEnum):
    """A way of choosing units."""

    words: str

    LAYERS = "layers", "All units of the layers"
    FILTER = "filter", "Those of the unit map in a state, or with words in their labels"
    SAMPLE = "sample", "A random sample"
    UNLABELLED = "unlabelled", "Those without a good label"
    LIST = "list", "A list of units"

    def __new__(cls, value: str, words: str) -> SelectionKind:
        member = str.__new__(cls, value)
        member._value_, member.words = value, words
        return member


@dataclass(frozen=True)
class UnitChoice:
    """The user's input. `state` is of `UnitState` or `CheckBand`, `below` a bound of r, `listed` lines of CSV."""

    choice: SelectionKind
    layers: Sequence[Layer]
    """Layers of one model."""
    state: str = ""
    words: str = ""
    sample: int = 0
    seed: int = 0
    below: float = GOOD
    listed: str = ""


Chosen = Mapping[Layer, Sequence[int]]
"""Layer -> its units, in ascending order; none is empty."""


def choose_units(choice: UnitChoice, names: SystemNameMasker) -> Chosen:
    """Return the selected units. Raises InvalidInput if there are none, or more than one sweep takes."""
    every = sum(layer.units for layer in choice.layers)
    found = _find_meant(choice, every, names)
    chosen = {layer: units for layer, units in found.items() if units}
    count = sum(map(len, chosen.values()))
    if not count:
        raise InvalidInput(_explain_none(choice, every), "choose")
    if count > MAX_UNITS:
        raise InvalidInput(
            f"{count:,} units are chosen, and a sweep takes at most {MAX_UNITS:,}. Choose fewer layers, or a random "
            "sample.",
            "choose",
        )
    return chosen


def _find_meant(choice: UnitChoice, every: int, names: SystemNameMasker) -> Chosen:
    match choice.choice:
        case SelectionKind.LIST:
            return read_unit_list(choice.listed, choice.layers)
        case SelectionKind.SAMPLE:
            return _sample(choice, every)
        case SelectionKind.FILTER:
            return _filter(choice, names)
        case SelectionKind.UNLABELLED:
            return _leave_out_good(choice, names)
        case SelectionKind.LAYERS:
            return {layer: range(layer.units) for layer in choice.layers}


def _explain_none(choice: UnitChoice, every: int) -> str:
    if choice.choice == SelectionKind.LIST:
        return "The list names no unit: write a line for each, as layer4,7."
    if not every:
        return "Choose one or more layers that have units."
    return f"None of the {every:,} units of these layers is meant by that: choose otherwise."


def _sample(choice: UnitChoice, every: int) -> dict[Layer, list[int]]:
    """Draw units from all layers, each as likely as any other; the same seed draws the same."""
    if not 1 <= choice.sample <= every:
        given = f", not {choice.sample:,}" if choice.sample else ""
        raise InvalidInput(f"Say how many of the {every:,} units to draw{given}.", "sample")
    # Sorted, so that one pass over the layers places all numbers.
    drawn = sorted(random.Random(choice.seed).sample(range(every), choice.sample))
    found: dict[Layer, list[int]] = {layer: [] for layer in choice.layers}
    # As if the units of all layers were numbered in one row
    place, start = iter(choice.layers), 0
    layer = next(place)
    for number in drawn:
        while number - start >= layer.units:
            start += layer.units
            layer = next(place)
        found[layer].append(number - start)
    return found


def _filter(choice: UnitChoice, names: SystemNameMasker) -> dict[Layer, list[int]]:
    """Select as the unit map does: in this state or band, and found by these words."""
    model = choice.layers[0].model
    # Bands and states share one field, as they do in the legend.
    band = next((each for each in CheckBand if each == choice.state), None)
    state = next((each for each in UnitState if each == choice.state), None)
    if choice.state and band is None and state is None:
        raise InvalidInput(
            f"There is no state “{choice.state[:40]}” on the unit map. Choose one of its legend.", "state"
        )
    known: Mapping[int, Mapping[int, str]] = {}
    if choice.state:
        known = (find_bands if band else states)(model, choice.layers, names)
    rest, wanted = CheckBand.NONE if band else UnitState.NEW, band or state
    # None means that words do not matter; an empty result selects nothing.
    found = unit_lists.find(choice.words, choice.layers, names) if choice.words else None

    def is_meant(layer: Layer, number: int) -> bool:
        in_state = wanted is None or known[layer.pk].get(number, rest) == wanted
        return in_state and (found is None or number in found.get(layer.pk, ()))

    return {layer: [number for number in range(layer.units) if is_meant(layer, number)] for layer in choice.layers}


def _leave_out_good(choice: UnitChoice, names: SystemNameMasker) -> dict[Layer, list[int]]:
    """Select the units none of whose labels reached the bound of r in a check."""
    reached = LabelCheck.objects.filter(unit__layer__in=list(choice.layers), pearson__gte=choice.below)
    hidden = names.are_hidden_at("unit__layer__model__name", "unit__layer__name", "unit__number")
    # On the development split, an agent tries labels during its run
    checks = reached.exclude(split=DEVELOPMENT).exclude(hidden).order_by()
    good = set(checks.values_list("unit__layer_id", "unit__number").distinct())
    return {
        layer: [number for number in range(layer.units) if (layer.pk, number) not in good] for layer in choice.layers
    }


# --- as a sweep keeps it ---


def keep_choice(choice: UnitChoice, chosen: Chosen) -> Selection:
    """Return the choice with its units, as a sweep stores it."""
    kept: Selection = {
        "kind": choice.choice.value,
        "model": choice.layers[0].model.name if choice.layers else next(iter(chosen)).model.name,
        "layers": [layer.name for layer in chosen],
        "units": {layer.name: format_ranges(units) for layer, units in chosen.items()},
    }
    if choice.choice == SelectionKind.FILTER:
        kept |= {"state": choice.state, "words": choice.words}
    elif choice.choice == SelectionKind.SAMPLE:
        kept |= {"sample": choice.sample}
    elif choice.choice == SelectionKind.UNLABELLED:
        kept |= {"below": choice.below}
    return kept


def list_units(sweep: Sweep) -> dict[str, list[int]]:
    """Return the units of a sweep: name of the layer -> numbers."""
    return {layer: read_stretches(text) for layer, text in sweep.selection.get("units", {}).items()}


def count_units(sweep: Sweep) -> int:
    return sum(map(len, list_units(sweep).values()))


def order_units(sweep: Sweep) -> list[tuple[str, int]]:
    """Return (layer, number) of the units in the order in which they are asked about."""
    units = [(layer, number) for layer, numbers in list_units(sweep).items() for number in numbers]
    # Shuffled, so that the finished ones are a fair sample of all at any time, also if a budget ends it
    random.Random(sweep.seed).shuffle(units)
    return units
