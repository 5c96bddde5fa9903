"""Circuits without the actions that make them."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from experiments.core.units_of_runs import keep_circuit
from experiments.models import Circuit, CircuitSearch, Dataset, Layer, Unit
from workers.record.circuits import CircuitCurve, CircuitMember, CircuitReport, FoundMember
from workers.record.decoding import encode
from workers.record.estimates import Estimate


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


def make_circuit_ids(owner: User, unit: Unit) -> dict[str, int]:
    """What stands in addresses of a circuit with two members, and of the first of them."""
    row = make_circuit(owner, unit, "own", 2)
    return {"circuit": row.pk, "circuit_member": row.members.earliest("pk").pk}


def make_studied(network: str) -> Unit:
    """The unit that stands for members of a circuit which is not there."""
    unit = keep_circuit(network, [CircuitMember(network, "fc", 5)])
    assert unit is not None
    return unit


def make_circuit_search(layer: Layer, dataset: Dataset, **changes: Any) -> CircuitSearch:
    """A search that was measured: three nodes, of which 1 and 2 are found."""
    asked = {"target": "car", "images": 100, "seeds": 3}
    row = CircuitSearch.objects.create(
        **asked, layer=layer, dataset=dataset, key=CircuitSearch.key_of(layer, dataset, **asked)
    )
    row.result, row.measured = encode(make_circuit_report(**changes)), timezone.now()
    row.save()
    return row


def make_circuit_report(**changes: Any) -> CircuitReport:
    """A circuit by effect explains nearly all, one drawn at random nothing."""
    by_effect, by_lot = (
        CircuitCurve(
            method, (1, 2), (Estimate(at, at - 0.1, at + 0.1, 3), Estimate(at, at, at, 3)), (Estimate(1 - at),) * 2
        )
        for method, at in (("effect", 0.9), ("random", 0.0))
    )
    known: dict[str, Any] = {
        "curves": (by_effect, by_lot),
        "members": (FoundMember(1, 2.5, 4.0), FoundMember(2, -0.5, 1.0)),
    }
    return CircuitReport("toybox", "layer4", "car", 3, 100, 3, **(known | changes))
