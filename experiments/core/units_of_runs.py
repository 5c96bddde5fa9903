"""Find the catalogue's unit of a run, to which its labels, checks and exemplars belong.

The members of a circuit have a row: the same members are the same unit, whatever their circuit is called, here and
in imported runs. A circuit that is changed later is another unit.
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
    """Return the unit; None if the catalogue no longer has its layer, or the members make no circuit."""
    if run.system_kind == CIRCUIT:
        members = decode_members(run.options.get("members", ()))
        return keep_circuit(run.model, members) if not find_size_problem(members) else None
    layer = Layer.objects.filter(model__name=run.model, name=run.layer, units__gt=run.unit).first()
    return Unit.objects.get_or_create(layer=layer, number=run.unit)[0] if layer else None


def keep_circuit(network: str, members: Sequence[CircuitMember]) -> Unit | None:
    """Return the unit for these members, created if needed; None if the network is not here."""
    model = VisionModelRow.objects.filter(name=network).first()
    if model is None:
        return None
    # Its number is outside the layer's range: it is never listed, drawn or counted with units of the network.
    known = {"kind": CIRCUIT, "position": 0, "path": "", "units": 0}
    layer, _ = Layer.with_circuits.get_or_create(model=model, name=ACTIVATION_LAYER, defaults=known)
    told = {"members": encode_members(members)}
    unit, is_new = Unit.objects.get_or_create(layer=layer, number=find_number(members), defaults=told)
    # Two circuits get the same number once in a thousand million cases; they are not mixed up.
    return unit if is_new or {*decode_members(unit.members or ())} == {*members} else None
