"""Choose a circuit on New run, in place of model, layer and unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.core.errors import InvalidInput
from experiments.core.params import parse_key
from experiments.core.units_of_runs import keep_circuit
from experiments.models import Circuit, Layer, Unit
from workers.record.circuits import ACTIVATION_LAYER, CIRCUIT, CircuitMember, decode_members, find_size_problem


@dataclass(frozen=True)
class ChosenCircuit:
    """The circuit that a run would study: members as they were when the form was opened."""

    unit: Unit
    members: Sequence[CircuitMember]
    row: Circuit | None
    """None if it was deleted or not named."""

    @property
    def options(self) -> dict[str, Any]:
        """Return options of the run's system."""
        # A copy of the members: later changes of the circuit do not change the run.
        named = {"circuit": self.row.pk, "circuit_name": self.row.name} if self.row else {}
        return {"members": self.unit.members, **named}


def place_circuit(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return model, layer and unit of the named circuit, if no unit is named. Raises InvalidInput."""
    # A unit that is named is the one of these members: the form was opened with it.
    if not values.get("circuit") or values.get("unit") not in (None, ""):
        return {}
    row = _read_circuit(values["circuit"])
    if (model := str(values.get("model") or "")) and model != row.network:
        raise InvalidInput(f"Circuit {row.pk} is of {row.network}, not of {model}. Leave out the model.", "circuit")
    members = list(row.members.select_related("unit__layer__model"))
    if gone := [each.member for each in members if each.place is None]:
        more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
        raise InvalidInput(f"{gone[0]}{more} of the circuit “{row.name}” is not here any more. Remove it.", "circuit")
    if problem := find_size_problem([each.member for each in members]):
        raise InvalidInput(problem, "circuit")
    unit = keep_circuit(row.network, [each.member for each in members])
    if unit is None:
        raise InvalidInput(f"The network {row.network} of the circuit “{row.name}” is not here.", "circuit")
    return {"model": row.network, "layer": ACTIVATION_LAYER, "unit": unit.number}


def _read_circuit(key: Any) -> Circuit:
    row = Circuit.objects.filter(pk=parse_key(str(key))).first()
    if row is None:
        raise InvalidInput(f"There is no circuit {str(key)[:20]}. List the circuits.", "circuit")
    return row


def find_circuit_unit(layer: Layer, written: str) -> Unit:
    """Return the unit of a circuit's members, by its number. Raises InvalidInput."""
    number = parse_key(written.strip())
    unit = Unit.objects.filter(layer=layer, number=number).first() if number else None
    if unit is None or not unit.members:
        raise InvalidInput(f"No circuit of {layer.model.name} has the number {written[:20]}. Name the circuit.", "unit")
    return unit


def choose_circuit(layer: Layer | None, number: int | None, key: Any) -> ChosenCircuit | None:
    """Return the circuit of the form; None for a unit of the network."""
    if layer is None or layer.kind != CIRCUIT or number is None:
        return None
    unit = Unit.objects.select_related("layer__model").get(layer=layer, number=number)
    # The members are what is studied: the circuit only counts if it is of the same network.
    row = Circuit.objects.filter(pk=parse_key(str(key or "")), network=layer.model.name).first()
    return ChosenCircuit(unit, decode_members(unit.members or ()), row)
