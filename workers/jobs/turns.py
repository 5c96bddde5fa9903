"""Whose turn it is: deficit round robin between the flows that have something to claim.

Shreedhar and Varghese, "Efficient fair queueing using deficit round robin" (1995), with deficits that may go below
zero, since nobody knows before it how long a round takes. A visit grants a flow `QUANTUM` seconds of work; it is
served, with one round, if that leaves it something, and charged for the seconds when the round is over. So flows share
seconds of work by their weights, one with long rounds beside one with short ones too, and whoever is new has waited
for one round of each of the others at most. Knows neither runs nor a database.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

QUANTUM = 1.0
"""Seconds of work that a visit grants to a flow of weight 1. Shorter than most rounds, which makes shares exact."""


@dataclass(frozen=True)
class Place:
    """A flow in line, with seconds of work that it was granted and has not had: below 0 if it had more."""

    flow: int
    deficit: float = 0.0
    weight: float = 1.0

    @property
    def grant(self) -> float:
        """Seconds that a visit grants. Nobody saves up more than that while there is nothing to serve."""
        return QUANTUM * self.weight

    @property
    def visits(self) -> int:
        """How many visits it takes until it is served."""
        return 1 + max(0, floor(-self.deficit / self.grant))


def find_turn(line: Sequence[Place]) -> tuple[int, int]:
    """Who of a line, least recently visited first, is served next: its place, and the cycle in which it is.

    Flows up to that place have been visited as often as the cycle says, those behind it once less. The line is not
    empty.
    """
    cycles = [each.visits for each in line]
    cycle = min(cycles)
    return cycles.index(cycle), cycle
