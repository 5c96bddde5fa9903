"""States of runs that this worker played recently, so that its next round of one reads only new events."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime

from experiments.models import Event, Run
from workers.agent.run_state import RunState

MAX_RECENT = 16
"""Maximum number of runs that a worker remembers. It plays these first (`round_threads`)."""
MAX_EVENTS = 10_000
"""Maximum number of events in all states. The least recently played one is dropped first."""

_Key = tuple[int, datetime]


@dataclass(frozen=True)
class KeptState:
    """The kept state of a run, and the row of its last event."""

    state: RunState
    last: Event
    left: bytes | None = None
    """What the last experiment left for the next one, if known."""

    def ends_with(self, row: Event) -> bool:
        """True if this database row is the last event of the state."""
        # The key alone is not enough: it may have been reused
        return (row.pk, row.seq, row.kind, row.time) == (self.last.pk, self.last.seq, self.last.kind, self.last.time)


class KeptStates:
    """The latest states by run. Thread-safe."""

    def __init__(self, most_runs: int = MAX_RECENT, most_events: int = MAX_EVENTS) -> None:
        self._most_runs, self._most_events = most_runs, most_events
        self._states: OrderedDict[_Key, KeptState] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, run: Run) -> KeptState | None:
        """Remove and return the state of the run."""
        with self._lock:
            # Removed while a round uses it, so that no two threads share one.
            return self._states.pop(_key_of(run), None)

    def put(self, run: Run, kept: KeptState) -> None:
        """Store the state, and drop the oldest ones beyond the limits."""
        with self._lock:
            self._states[_key_of(run)] = kept
            self._states.move_to_end(_key_of(run))
            while len(self._states) > self._most_runs or self._count_events() > self._most_events:
                self._states.popitem(last=False)

    def _count_events(self) -> int:
        return sum(len(each.state.events) for each in self._states.values())


def _key_of(run: Run) -> _Key:
    """Return the key of a run."""
    # The number alone is not enough: a database may reuse the number of a deleted run.
    return run.pk, run.created


kept_states = KeptStates()
"""The states of this process."""
