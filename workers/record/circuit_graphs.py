"""Question and result of a circuit graph: the effect of each member on a class and on other members.

Converts to plain JSON and back. `workers.circuits.graph` measures it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from workers.record.circuits import CircuitMember
from workers.record.estimates import NONE, Estimate

MAX_NODES = 64
"""Maximum number of members in a graph. Edges grow with its square: 64 members have up to 2,016."""


def find_graph_problem(members: Sequence[CircuitMember]) -> str:
    """Return why these members make no graph; "" if they do."""
    if len(members) > MAX_NODES:
        return (
            f"A graph takes at most {MAX_NODES} members, and this circuit has {len(members):,}. There is an edge for "
            "each pair of members, so a larger graph could not be read or shown on a page. Make a circuit of "
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
    """How much the logit of the class falls when this member alone is held at its mean.

    Averaged over those images on which the member is more active than on average.
    """
    mean: float | None = None
    """Mean over all positions of the probe images; None for a class, which cannot be held."""
    is_constant: bool = False
    """True if its activation is the same in all probe images."""

    @property
    def member(self) -> CircuitMember:
        return CircuitMember(self.model, self.layer, self.unit)


@dataclass(frozen=True)
class GraphEdge:
    """The effect of a member on a member of a later layer."""

    source: int
    """Index among the nodes."""
    target: int
    effect: Estimate
    """How much the later member's activation falls when the earlier one alone is held at its mean.

    In standard deviations of the later one over the probe images; above 0 if the earlier one raises it. Averaged
    over the images on which the earlier one's own effect is measured.
    """

    @property
    def is_clear(self) -> bool:
        """True if the interval excludes 0."""
        low, high = self.effect.low, self.effect.high
        return low is not None and high is not None and (low > 0 or high < 0)


@dataclass(frozen=True)
class CircuitGraphReport:
    """The graph of a circuit on the images that activate it most."""

    class_number: int | None = None
    class_name: str = ""
    """Empty if the network has no classes."""
    was_chosen: bool = False
    """True if the class was chosen because the circuit moves its logit most on these images, False if it was asked
    for."""
    looked: int = 0
    """Number of probe images."""
    images: int = 0
    """Number of images that activate the circuit most, on which effects are measured."""
    nodes: tuple[GraphNode, ...] = ()
    """In the order of the members."""
    edges: tuple[GraphEdge, ...] = ()
    """From each member to each varying member of a later layer."""
    logit: Estimate = NONE
    """Logit of the class on these images."""
    all_off: Estimate = NONE
    """How much it falls when all members are held at their means."""
    faithfulness: Estimate = NONE
    """(m(C) - m(0)) / (m(M) - m(0)), where m is the mean logit.

    M is the full model; 0 holds all units of the members' layers at their means; C holds all of them but the
    members.
    """
    completeness: Estimate = NONE
    """The same ratio for all other units without the members: 0 if the circuit contains everything that matters."""
    why: str = ""
    """Why nothing was measured; "" if it was."""


def read_circuit_graph(facts: Any) -> CircuitGraphReport:
    """Parse a stored report. Raises ValueError if it is invalid."""
    try:
        found = msgspec.convert(facts, CircuitGraphReport)
    except msgspec.ValidationError as error:
        raise ValueError(f"This is no graph of a circuit: {error}. Ask for it again.") from None
    # A report says either what was measured or why nothing was
    if not found.nodes and not found.why:
        raise ValueError("This is no graph of a circuit: it has no nodes. Ask for it again.")
    places = range(len(found.nodes))
    # Pages index nodes by these numbers
    if any(edge.source not in places or edge.target not in places for edge in found.edges):
        raise ValueError("This is no graph of a circuit: an edge leads to no node. Ask for it again.")
    return found
