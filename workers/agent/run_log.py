"""The interface through which the loop records a run."""

from __future__ import annotations

from typing import Protocol

from workers.agent.run_state import RunState
from workers.record.events import Event, Payload


class RunLog(Protocol):
    """Records a run step by step. The loop's only way to the outside; `jobs/run_log.py` implements it."""

    @property
    def known(self) -> RunState:
        """The state of the run at the last read, with what was recorded here since. No other code changes it."""

    def read(self) -> RunState:
        """Read the state of the run, with what others recorded."""

    def append(self, kind: str, payload: Payload, *, state: bytes = b"") -> Event:
        """Record one step, whole or not at all. `state` is what an experiment leaves to the next.

        Raises LeaseLost if another worker holds the run by now.
        """

    def state(self) -> bytes:
        """Return what the last recorded experiment left."""

    def seconds(self) -> float:
        """Return the seconds of work on this run so far, the present round included."""

    def draft(self, text: str) -> None:
        """Show the reply under way, complete so far; empty clears it. Cheap enough to call for every word."""

    def progress(self, what: str, done: int, total: int) -> None:
        """Show the progress of long work. Raises Cancelled if the run was stopped."""

    def is_cancelled(self) -> bool:
        """True if a person stopped the run. Cheap enough to call often."""

    def explain_outage(self, error: Exception) -> str:
        """Say which service is away or full if that caused the error; "" for any other error."""

    def pausing(self) -> str:
        """Name of the user who asked to pause the run before its next round; "" if there is none."""
