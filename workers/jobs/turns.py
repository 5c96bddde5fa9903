"""Decide whose turn it is: deficit round robin between the queues that have something to claim.

Shreedhar and Varghese, "Efficient fair queueing using deficit round robin" (1995), with deficits that may be negative,
because the length of a round is not known in advance. Queues share seconds of work by their weights, whatever the
length of their rounds, and a new queue waits for at most one round of each other queue.

1. A visit grants a queue `QUANTUM` seconds of work.
2. If its deficit is then positive, the queue is served with one round.
3. Afterwards it is charged for the seconds of the round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

QUANTUM = 1.0
"""Seconds of work that a visit grants to a queue of weight 1. Shorter than most rounds, which makes shares exact."""


@dataclass(frozen=True)
class QueueState:
    """A queue in line with its deficit: granted seconds that it has not used, negative if it used more."""

    run_queue: int
    deficit: float = 0.0
    weight: float = 1.0

    @property
    def grant(self) -> float:
        """Seconds that a visit grants, and the most that an idle queue can save."""
        return QUANTUM * self.weight

    @property
    def visits(self) -> int:
        """Number of visits until the queue is served."""
        # The deficit must be above 0, so a queue at exactly 0 needs one more visit.
        return 1 + max(0, floor(-self.deficit / self.grant))


def pick_queue(line: Sequence[QueueState]) -> tuple[int, int]:
    """Find the next queue to serve in a line, least recently visited first. Return its position and cycle.

    Queues up to this position are visited `cycle` times, those after it once less. The line must not be empty.
    """
    cycles = [each.visits for each in line]
    # Nothing is served in earlier cycles
    cycle = min(cycles)
    return cycles.index(cycle), cycle
