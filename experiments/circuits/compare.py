"""Compare two circuits: their shared members, and measurements of both on the same class and images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments.circuits.graph import is_of_now, list_graphs, name_class, read_report
from experiments.circuits.lists import MemberView, list_circuits, view_members
from experiments.core.system_names import SystemNameMasker
from experiments.models import Circuit, CircuitGraph
from workers.record.circuit_graphs import CircuitGraphReport
from workers.record.circuits import CircuitMember
from workers.record.estimates import Estimate

MAX_CHOICES = 200
"""Maximum circuits that a form offers, the newest."""
# A bound on the work of a page: each graph is parsed.
_READ = 20
"""Newest graphs of a circuit that are searched for one of the same class."""


@dataclass(frozen=True)
class SharedMember:
    """A member of both circuits, or of one; an effect is None if its circuit was not measured in this way."""

    view: MemberView
    first: Estimate | None = None
    second: Estimate | None = None


@dataclass(frozen=True)
class CircuitComparison:
    """The comparison of two circuits."""

    first: Circuit
    second: Circuit
    shared: Sequence[SharedMember]
    first_only: Sequence[SharedMember]
    second_only: Sequence[SharedMember]
    similarity: float | None
    """Jaccard similarity: shared members over all; None for circuits of two networks."""
    class_name: str = ""
    """The class of the effects; "" if no graphs of both circuits share class and dataset."""
    dataset: str = ""


def compare_circuits(first: Circuit, second: Circuit, names: SystemNameMasker) -> CircuitComparison:
    """Return the comparison. Members are in the order of their circuit; shared ones in that of the first."""
    views = [{each.member: each for each in view_members(row, names)} for row in (first, second)]
    one, two = views
    graphs = _find_pair(first, one, second, two)
    effects = [_read_effects(each[1]) if each else {} for each in graphs or (None, None)]

    def line(view: MemberView) -> SharedMember:
        return SharedMember(view, effects[0].get(view.member), effects[1].get(view.member))

    everything = len(one.keys() | two.keys())
    return CircuitComparison(
        first=first,
        second=second,
        shared=[line(view) for member, view in one.items() if member in two],
        first_only=[line(view) for member, view in one.items() if member not in two],
        second_only=[line(view) for member, view in two.items() if member not in one],
        similarity=len(one.keys() & two.keys()) / everything
        if everything and first.network == second.network
        else None,
        class_name=name_class(graphs[0][1]) if graphs else "",
        dataset=str(graphs[0][0].dataset.label or graphs[0][0].dataset.key) if graphs else "",
    )


def _read_effects(report: CircuitGraphReport) -> Mapping[CircuitMember, Estimate]:
    return {each.member: each.effect for each in report.nodes}


Views = Mapping[CircuitMember, MemberView]
Measured = tuple[CircuitGraph, CircuitGraphReport]


def _find_pair(first: Circuit, one: Views, second: Circuit, two: Views) -> tuple[Measured, Measured] | None:
    """Return the newest graphs of both circuits as they are now that share class, network and dataset."""
    if first.network != second.network:
        return None
    # Reversed, so that the newest of several graphs with one question wins.
    by_question = {_question(each): each for each in reversed(_list_measured(second, two))}
    for each in _list_measured(first, one):
        if found := by_question.get(_question(each)):
            return each, found
    return None


def _list_measured(circuit: Circuit, views: Views) -> list[Measured]:
    """Return graphs with a class, for the current weights and members, newest first."""
    # Effects of other members or weights would be compared with those of today.
    rows = [row for row in list_graphs(circuit).exclude(measured=None)[:_READ] if is_of_now(row, list(views.values()))]
    read = [(row, read_report(row)) for row in rows]
    return [(row, report) for row, report in read if report is not None and report.class_number is not None]


def _question(measured: Measured) -> tuple[int, int | None]:
    row, report = measured
    return row.dataset_id, report.class_number


def list_others(circuit: Circuit | None = None) -> Sequence[Circuit]:
    """Return circuits to choose from: those of the same network first, then the newest."""
    rows = list(list_circuits()[:MAX_CHOICES])
    if circuit is None:
        return rows
    # The sort is stable: within a network, the newest stay first.
    return sorted((each for each in rows if each.pk != circuit.pk), key=lambda each: each.network != circuit.network)
