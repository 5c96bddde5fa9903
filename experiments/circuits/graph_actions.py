"""Actions on the graph of a circuit: request it."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from experiments.core.actors import Actor
from experiments.core.asked_once import ask_unless_answered, find_or_add
from experiments.core.audit import Verb
from experiments.core.errors import InvalidInput, StateConflict
from experiments.models import Circuit, CircuitGraph, CircuitMemberRow, Dataset, JobKind, Layer, Role
from workers.record.circuit_graphs import find_graph_problem
from workers.record.decoding import encode

ASKS = Role.RESEARCHER
_MAX_NAMES = 8
"""Classes that a message names."""


@transaction.atomic
def ask_for_graph(actor: Actor, circuit: Circuit, key: str, target: str = "") -> CircuitGraph:
    """Ask a worker to measure the members' effects on a class and on each other over a dataset. The same question
    is measured once; a stopped or failed one starts again. Circuits of other people may be measured too.

    Raises StateConflict for a circuit or dataset that cannot be used, InvalidInput for an unknown class.
    """
    actor.require(ASKS)
    members = list_members(circuit)
    if why := explain_unmeasurable(circuit, members):
        raise StateConflict(why)
    dataset = Dataset.objects.filter(key=key, available=True).first()
    if dataset is None:
        raise StateConflict(f"No worker can use a dataset {key[:200]!r}. List the datasets for its remedy.")
    target = _check_target(circuit, target)
    asked = {"circuit": circuit, "dataset": dataset, "target": target}
    # A copy of the members: the circuit may change while the graph is measured.
    asked["members"] = [encode(each.member) for each in members]
    row, _ = find_or_add(CircuitGraph, CircuitGraph.key_of(circuit, members, dataset, target), asked)
    ask_unless_answered(actor, row, JobKind.GRAPH, Verb.GRAPH_ASKED, dataset=key)
    return row


def list_members(circuit: Circuit) -> list[CircuitMemberRow]:
    return list(circuit.members.select_related("unit__layer__model"))


def explain_unmeasurable(circuit: Circuit, members: Sequence[CircuitMemberRow]) -> str:
    """Explain why no graph of these members can be measured; "" if no reason is known."""
    if problem := find_graph_problem([each.member for each in members]):
        return problem
    if circuit.base is None:
        return f"{circuit.network} is not here any more, so nothing of it can be measured. Add the model again."
    gone = next((each for each in members if each.place is None), None)
    return f"{gone.member} is not here any more. Remove it from the circuit, or add its model again." if gone else ""


def find_class_layer(circuit: Circuit) -> Layer | None:
    """Return the layer of the network whose units are the classes."""
    return circuit.base.layers.filter(kind="logit").first() if circuit.base else None


def _check_target(circuit: Circuit, typed: str) -> str:
    """Return a class by its name, or by its number if several have that name; "" for none. Raises InvalidInput."""
    name = typed.strip()
    if not name:
        return ""
    layer = find_class_layer(circuit)
    if layer is None:
        raise InvalidInput(f"{circuit.network} knows no classes. Leave the class empty.", "target")
    names = list(layer.names)
    if name in names:
        # ImageNet, for one, has two classes "crane": a repeated name is stored as a number.
        return name if names.count(name) == 1 else str(names.index(name))
    # `isascii`, because `isdigit` is also true of digits that `int` refuses, such as ².
    if name.isascii() and name.isdigit() and len(name) < 10 and int(name) < layer.units:
        # A number of a class with a unique name is stored by that name, so that both ways of asking are one question.
        own = layer.name_of(int(name))
        return own if own and names.count(own) == 1 else str(int(name))
    some = ", ".join(names[:_MAX_NAMES])
    raise InvalidInput(
        f"{circuit.network} has no class {name[:60]!r}. Choose one such as {some}; or a number up to "
        f"{layer.units - 1:,}; or leave it empty.",
        "target",
    )
