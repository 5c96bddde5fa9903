"""A circuit: units and latents of one network that are studied together, as one thing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MOST_MEMBERS = 200
"""Members of a circuit."""
CIRCUIT = "circuit"
"""Kind of the systems that are circuits."""
ACTIVATION_LAYER, MAP_LAYER = "circuit", "circuit map"
"""What a circuit is studied as: unit 0 of the first; the second says where it responds."""
LATENTS = "sae:"
"""Family of the models whose units are latents."""


@dataclass(frozen=True, order=True)
class CircuitMember:
    """A unit of a layer of the network, or a latent of an auto-encoder of one of its layers."""

    model: str
    """Key of the network, or "sae:NAME"."""
    layer: str
    unit: int

    @property
    def is_latent(self) -> bool:
        return self.model.startswith(LATENTS)

    def __str__(self) -> str:
        return f"{self.model} / {self.layer} / unit {self.unit}"


def find_size_problem(members: Sequence[CircuitMember]) -> str:
    """Why so many members make no circuit; "" if they do."""
    if not 1 <= len(members) <= MOST_MEMBERS:
        return f"A circuit has 1 to {MOST_MEMBERS} members, not {len(members):,}."
    if len(set(members)) != len(members):
        twice = next(each for each in members if members.count(each) > 1)
        return f"{twice} is in the circuit twice."
    return ""
