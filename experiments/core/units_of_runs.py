"""The unit of the catalogue that a run is about: the row that its labels, checks and exemplars hang on.

A circuit has a row for its members: the same members are the same unit, whatever their circuit is called, here and in
runs that somebody brings. A circuit that is changed later is another unit.
"""

from __future__ import annotations

from collections.abc import Sequence

from experiments.models import Layer, Run, Unit, VisionModelRow
from workers.record.circuits import (
    ACTIVATION_LAYER,
    CIRCUIT,
    CircuitMember,
    decode_members,
    encode_members,
    find_number,
    find_size_problem,
)


def find_unit_of(run: Run) -> Unit | None:
    """None where the catalogue does not know its layer any more, or its members make no circuit."""
    if run.system_kind == CIRCUIT:
        members = decode_members(run.options.get("members", ()))
        return keep_circuit(run.model, members) if not find_size_problem(members) else None
    layer = Layer.objects.filter(model__name=run.model, name=run.layer, units__gt=run.unit).first()
    return Unit.objects.get_or_create(layer=layer, number=run.unit)[0] if layer else None


def keep_circuit(network: str, members: Sequence[CircuitMember]) -> Unit | None:
    """The unit that these members are studied as; None where the network is not here."""
    model = VisionModelRow.objects.filter(name=network).first()
    if model is None:
        return None
    # No unit of it is in the range of a layer: it is never listed, drawn or counted with those of the network
    known = {"kind": CIRCUIT, "position": 0, "path": "", "units": 0}
    layer, _ = Layer.with_circuits.get_or_create(model=model, name=ACTIVATION_LAYER, defaults=known)
    told = {"members": encode_members(members)}
    unit, is_new = Unit.objects.get_or_create(layer=layer, number=find_number(members), defaults=told)
    # One in a thousand million: two circuits of one number are not mixed up
    return unit if is_new or {*decode_members(unit.members or ())} == {*members} else None
