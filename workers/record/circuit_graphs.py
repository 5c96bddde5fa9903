"""What is asked of the graph of a circuit, and what was measured: what each member does to a class, and to the others.

Plain JSON both ways. How it is measured is in `workers.circuits.graph`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from workers.record.circuits import CircuitMember
from workers.record.estimates import NONE, Estimate

MAX_NODES = 64
"""Members of a graph. There may be an edge for each pair, so that edges grow with the square: 64 have up to 2,000."""


def find_graph_problem(members: Sequence[CircuitMember]) -> str:
    """Why so many members make no graph; "" if they do."""
    if len(members) > MAX_NODES:
        return (
            f"A graph takes at most {MAX_NODES} members, and this circuit has {len(members):,}. There is an edge for "
            "each pair of members, so that nobody could read more, and pages could not hold them. Make a circuit of "
            "the strongest members."
        )
    return "" if members else "A circuit without members has no graph. Add members first."


@dataclass(frozen=True)
class GraphNode:
    """A member of a circuit."""

    model: str
    layer: str
    unit: int
    effect: Estimate = NONE
    """How much the logit of the class falls when this member alone is held at its mean, on average over those of the
    images on which it is more active than on average."""
    mean: float | None = None
    """Over all places of the images that were looked at; None for a class, which cannot be held."""
    is_constant: bool = False
    """Whether its activation is the same in all images that were looked at."""

    @property
    def member(self) -> CircuitMember:
        return CircuitMember(self.model, self.layer, self.unit)


@dataclass(frozen=True)
class GraphEdge:
    """What a member does to one of a later layer."""

    source: int
    """Place among the nodes."""
    target: int
    effect: Estimate
    """How much the later one's activation falls when the earlier one alone is held at its mean, over the standard
    deviation of the later one among the images that were looked at: above 0 if the earlier one raises it. On average
    over the images that the earlier one's own effect is measured on."""

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves 0 out."""
        low, high = self.effect.low, self.effect.high
        return low is not None and high is not None and (low > 0 or high < 0)


@dataclass(frozen=True)
class CircuitGraphReport:
    """The graph of a circuit on the images that activate it most."""

    class_number: int | None = None
    class_name: str = ""
    """"" where the network knows no classes."""
    was_chosen: bool = False
    """Whether the class is that whose logit the circuit moves most on these images, and not one that was asked for."""
    looked: int = 0
    """Probe images that were looked at."""
    images: int = 0
    """Those that activate the circuit most, on which effects are measured."""
    nodes: tuple[GraphNode, ...] = ()
    """In the order of the members."""
    edges: tuple[GraphEdge, ...] = ()
    """From each member to each of a later layer that varies; of equals the earlier nodes first."""
    logit: Estimate = NONE
    """Of the class, on these images."""
    all_off: Estimate = NONE
    """How much it falls when all members are held at their means."""
    faithfulness: Estimate = NONE
    """(m(C) - m(0)) / (m(M) - m(0)), m being the mean logit: of the model (M), with all units of the members' layers
    held at their means (0), with all but the members (C)."""
    completeness: Estimate = NONE
    """The same of all others without the members: 0 if the circuit holds all that matters."""
    why: str = ""
    """Why nothing was measured; "" if it was."""


def read_circuit_graph(facts: Any) -> CircuitGraphReport:
    """A report from the plain JSON that it was stored as. Raises ValueError if it is none."""
    try:
        found = msgspec.convert(facts, CircuitGraphReport)
    except msgspec.ValidationError as error:
        raise ValueError(f"This is no graph of a circuit: {error}. Ask for it again.") from None
    if not found.nodes and not found.why:
        raise ValueError("This is no graph of a circuit: it has no nodes. Ask for it again.")
    places = range(len(found.nodes))
    if any(edge.source not in places or edge.target not in places for edge in found.edges):
        raise ValueError("This is no graph of a circuit: an edge leads to no node. Ask for it again.")
    return found
