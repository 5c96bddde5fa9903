"""Find the state of every unit of a model, in three queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

from experiments.core.system_names import SystemNameMasker
from experiments.models import Layer, LayerIndex, Run, Unit, VisionModelRow
from experiments.units.colours import Colour
from workers.record.statuses import ACTIVE, Status

T = TypeVar("T")


class UnitState(Colour):
    """A unit has the first state that applies to it."""

    LIVE = "live", "Queued or running", "a run is at it, or will be soon"
    CONCLUDED = "concluded", "Concluded", "a run concluded"
    LABELLED = "labelled", "Labelled", "it has a label, but no run concluded"
    OPEN = "open", "Waiting or failed", "its runs wait for a person, failed, were stopped or reached a limit"
    DEAD = "dead", "Dead", "no image of any dataset it was measured on activates it"
    NEW = "new", "Not investigated", "no run, no label"


ORDER = tuple(UnitState)

States = Mapping[int, Mapping[int, UnitState]]
"""Id of a layer -> number of a unit -> its state; without units that were not asked about."""


def states(model: VisionModelRow, layers: Sequence[Layer], names: SystemNameMasker) -> States:
    """Return the states of the units of these layers of the model. Units that the viewer has yet to judge blind
    look new."""
    ids = {layer.name: layer.pk for layer in layers}
    found: dict[int, dict[int, UnitState]] = {layer.pk: {} for layer in layers}
    # Hidden places may name layers that are not asked about.
    kept = {(ids[layer], number) for name, layer, number in names.hidden if name == model.name and layer in ids}

    def note(layer: int, number: int, state: UnitState) -> None:
        # A dead unit looks dead to everyone: that comes from the dataset and reveals no run.
        if (layer, number) in kept and state != UnitState.DEAD:
            return
        known = found[layer].get(number, UnitState.NEW)
        # The first state in the order of the enum wins, in whatever order they are found.
        found[layer][number] = min(known, state, key=ORDER.index)

    runs = Run.objects.filter(model=model.name, layer__in=ids).order_by().values_list("layer", "unit", "status")
    # Distinct: a unit may have thousands of runs with the same status.
    for name, number, status in runs.distinct():
        note(ids[name], number, state_of(status))
    labelled = Unit.objects.filter(layer__in=ids.values(), labels__isnull=False).order_by()
    for layer, number in labelled.values_list("layer_id", "number").distinct():
        note(layer, number, UnitState.LABELLED)
    for layer, numbers in find_dead_units(list(ids.values())).items():
        for number in numbers:
            note(layer, number, UnitState.DEAD)
    return found


def state_of(status: str) -> UnitState:
    """Return the state of a unit whose run has this status."""
    if status in ACTIVE:
        return UnitState.LIVE
    return UnitState.CONCLUDED if status == Status.CONCLUDED else UnitState.OPEN


def find_dead_units(layers: Sequence[int]) -> dict[int, set[int]]:
    """Return the units of each layer that no image of any indexed dataset activates."""
    found: dict[int, set[int]] = {}
    rows = LayerIndex.objects.filter(layer__in=layers, dead__isnull=False).values_list("layer_id", "dead")
    for layer, dead_here in rows:
        numbers = set(dead_here or ())
        # Dead means dead on every dataset.
        found[layer] = found[layer] & numbers if layer in found else numbers
    return found


def count_states(layers: Sequence[Layer], known: Mapping[int, Mapping[int, T]], rest: T) -> Counter[T]:
    """Count the units in each state, or each band; `rest` is that of units which are not in `known`."""
    counts = Counter(state for layer in layers for n, state in known[layer.pk].items() if n < layer.units)
    counts[rest] += sum(layer.units for layer in layers) - counts.total()
    return counts
