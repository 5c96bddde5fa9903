"""A run that is written down in memory alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from workers.agent.run_state import RunState
from workers.errors import Cancelled
from workers.record.decoding import decode, encode
from workers.record.events import Event, Payload


def fold(events: Iterable[Event]) -> RunState:
    """The state of a run with these events."""
    state = RunState()
    for event in events:
        state.add(event)
    return state


class RunLogInMemory:
    """A `RunLog` of one run, which keeps nothing afterwards. `stop` may be set from any thread."""

    def __init__(self, events: Sequence[Event] = (), show: Callable[[Event], None] | None = None) -> None:
        """`show` is called with each event as it is recorded."""
        self.stop = False
        self.pause = ""
        """Who wants it paused."""
        self.words = ""
        """The reply under way."""
        self.doing = ("", 0, 0)
        """What long work is doing: what, done, total."""
        self.known = fold(events)
        self._state = b""
        self._show = show
        self._began = time.monotonic()

    def events(self) -> Sequence[Event]:
        """All events so far, in order."""
        return tuple(self.known.events)

    def read(self) -> RunState:
        return self.known

    def append(self, kind: str, payload: Payload, *, state: bytes = b"") -> Event:
        # Through JSON and back, as in a database, so that what cannot be stored shows here too.
        event = Event(len(self.known.events) + 1, kind, decode(kind, encode(payload)))
        self.known.add(event)
        self._state = state if kind == "result" else self._state
        if self._show:
            self._show(event)
        return event

    def state(self) -> bytes:
        return self._state

    def seconds(self) -> float:
        return time.monotonic() - self._began

    def draft(self, text: str) -> None:
        self.words = text

    def progress(self, what: str, done: int, total: int) -> None:
        self.doing = (what, done, total)
        if self.stop:
            raise Cancelled("The run was stopped.")

    def explain_outage(self, error: Exception) -> str:
        """Nothing of it can be away."""
        del error
        return ""

    def is_cancelled(self) -> bool:
        return self.stop

    def pausing(self) -> str:
        return self.pause
