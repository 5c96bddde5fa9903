"""The states of runs that this worker played last, so that its next round of one reads new events alone.

A state is taken out when a round begins and put back when it ends as it should, so that no two threads share one. It
is used only if its last event is still the one that the database holds: a run that was deleted, or whose transaction
was rolled back, leaves its keys to another.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime

from experiments.models import Event, Run
from workers.agent.run_state import RunState

MAX_RECENT = 16
"""Runs that a worker remembers; it plays these first (`round_threads`)."""
MAX_EVENTS = 10_000
"""Events of all states together; the longest ago played gives way first."""

_Key = tuple[int, datetime]


@dataclass(frozen=True)
class KeptState:
    """What is kept of a run: its state, and the row of the event that came last."""

    state: RunState
    last: Event
    left: bytes | None = None
    """What the last experiment left to the next, where that is known here."""

    def ends_with(self, row: Event) -> bool:
        """Whether the database has this as the event that came last."""
        return (row.pk, row.seq, row.kind, row.time) == (self.last.pk, self.last.seq, self.last.kind, self.last.time)


class KeptStates:
    """The latest states, by run. Safe to use from several threads."""

    def __init__(self, most_runs: int = MAX_RECENT, most_events: int = MAX_EVENTS) -> None:
        self._most_runs, self._most_events = most_runs, most_events
        self._states: OrderedDict[_Key, KeptState] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, run: Run) -> KeptState | None:
        """What was kept of the run, which is kept no longer."""
        with self._lock:
            return self._states.pop(_key_of(run), None)

    def put(self, run: Run, kept: KeptState) -> None:
        """Keep this of the run, and forget what is too much."""
        with self._lock:
            self._states[_key_of(run)] = kept
            self._states.move_to_end(_key_of(run))
            while len(self._states) > self._most_runs or self._count_events() > self._most_events:
                self._states.popitem(last=False)

    def _count_events(self) -> int:
        return sum(len(each.state.events) for each in self._states.values())


def _key_of(run: Run) -> _Key:
    """The time is part of it, since a database may give the key of a deleted run again."""
    return run.pk, run.created


kept_states = KeptStates()
"""Those of this process."""
