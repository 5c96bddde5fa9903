"""Where the loop writes a run down: what it needs of any such place."""

from __future__ import annotations

from typing import Protocol

from workers.agent.run_state import RunState
from workers.record.events import Event, Payload


class RunLog(Protocol):
    """Where a run is written down, step by step. The loop's only way to the outside.

    The database is one (`jobs.run_log`).
    """

    @property
    def known(self) -> RunState:
        """The state of the run as it was last read, with what was recorded here since. Nobody else changes it."""

    def read(self) -> RunState:
        """The state of the run by now, with what others recorded."""

    def append(self, kind: str, payload: Payload, *, state: bytes = b"") -> Event:
        """Record one step, whole or not at all. `state` is what an experiment leaves to the next.

        Raises LeaseLost if another worker holds the run by now.
        """

    def state(self) -> bytes:
        """What the last recorded experiment left."""

    def seconds(self) -> float:
        """Seconds of work on this run so far, the present round included."""

    def draft(self, text: str) -> None:
        """Show the reply under way, whole so far; empty clears it. Cheap to call for every word."""

    def progress(self, what: str, done: int, total: int) -> None:
        """Show what long work is doing. Raises Cancelled if the run was stopped."""

    def is_cancelled(self) -> bool:
        """Whether a person stopped the run. Cheap to call often."""

    def explain_outage(self, error: Exception) -> str:
        """What is away or full where the error comes of that, "" for any other error."""

    def pausing(self) -> str:
        """Who wants the run paused before its next round, "" if nobody does."""
