"""Runs on a circuit of toybox, with members whose activations nobody measures, and one that is played."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from experiments.circuits import actions
from experiments.circuits.members import MemberDraft
from experiments.core.actors import Actor
from experiments.models import Circuit, Run, VisionModelRow
from experiments.runs import actions as asking
from experiments.runs.asking.form import QueryForm
from workers.record.circuits import CircuitMember
from workers.record.limits import DEFAULT_LIMITS

MEMBERS = [CircuitMember("toybox", "layer4", number) for number in (7, 12, 30)]


def toybox_row() -> VisionModelRow:
    """The network and its layer without a worker that looks at them."""
    row, is_new = VisionModelRow.objects.get_or_create(name="toybox", defaults={"available": True, "revision": "1"})
    if is_new:
        row.layers.create(position=0, name="layer4", path="layer4", kind="conv", units=64)
    return row


def make_toybox_circuit(owner: User, name: str = "round things", members: list[CircuitMember] = MEMBERS) -> Circuit:
    return actions.create_circuit(Actor(owner), name, [MemberDraft(each) for each in members])


def query_values(circuit: Circuit, **more: Any) -> dict[str, Any]:
    """What the form sends for a run on a circuit."""
    known = {"question": "What is it?", "task": "describe", "toolset": "toybox", "backbone": "scripted"}
    return known | {"dataset": "toybox", "circuit": circuit.pk, **DEFAULT_LIMITS} | more


def ask_about(owner: User, circuit: Circuit, **more: Any) -> Run:
    return asking.ask(Actor(owner), QueryForm(query_values(circuit, **more)), enqueue=False)
