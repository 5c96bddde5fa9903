"""Circuits without the actions that make them."""

from __future__ import annotations

from django.contrib.auth.models import User

from experiments.core.units_of_runs import keep_circuit
from experiments.models import Circuit, Unit
from workers.record.circuits import CircuitMember


def make_circuit(owner: User, unit: Unit, name: str, *more: int) -> Circuit:
    """A circuit of a unit and of those of the same layer with these numbers."""
    model = unit.layer.model
    row = Circuit.objects.create(owner=owner, name=name, network=model.name, base=model)
    units = [unit, *(Unit.objects.get_or_create(layer=unit.layer, number=each)[0] for each in more)]
    for position, each in enumerate(units, 1):
        row.members.create(
            position=position,
            unit=each,
            model=model.name,
            layer=each.layer.name,
            number=each.number,
            revision=model.revision,
        )
    return row


def make_studied(network: str) -> Unit:
    """The unit that stands for members of a circuit which is not there."""
    unit = keep_circuit(network, [CircuitMember(network, "fc", 5)])
    assert unit is not None
    return unit
