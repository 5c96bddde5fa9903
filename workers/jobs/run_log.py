"""The run log in the database: records every step of a run, under the claim of one worker.

A `RunLog` (agent/run_log.py) on top of `experiments.core.transcript`, `experiments.core.notify` and the image store.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from functools import partial

from django.db import transaction

from experiments.core import notify, transcript
from experiments.core.outages import explain_outage
from experiments.models import Event as Row
from experiments.models import Run
from workers.agent.run_state import RunState
from workers.bias.statements import add_tests
from workers.errors import Cancelled, LeaseLost
from workers.jobs import counters, lease
from workers.jobs.functions import score_end
from workers.jobs.images import ImagesInDatabase
from workers.jobs.kept_states import KeptState, kept_states
from workers.record.events import Ended, Event, Note, Payload, Replied
from workers.record.experiments import LogEntry

DRAFT_EVERY = 0.1
"""Interval between pieces of a streamed reply, in seconds."""

REPORT_EVERY = 0.25
"""Interval between progress reports, in seconds."""

LOOK_EVERY = 0.5
"""Interval between checks whether the run was stopped, in seconds."""


MAX_LEFT = 1_000_000
"""Maximum bytes of an experiment's saved state that are kept in memory between rounds."""

_AT_ONCE = 200
"""Number of events read per query."""


class DatabaseRunLog:
    """The log of one claim of a run. Used by one thread."""

    def __init__(self, run: Run, images: ImagesInDatabase, lost: threading.Event) -> None:
        self.run = run
        self.images = images
        self.lost = lost
        self.began = time.monotonic()
        self._known = RunState()
        self._last: Row | None = None
        """Row of the last known event."""
        self._left: bytes | None = None
        """State left by the last experiment; None if it must be read from the database."""
        self._is_current = False
        """True if no other event can have come since the last known one."""
        self.sent = 0
        self.drafted = self.looked = self.reported = 0.0
        self.stop = self.showing = False

    @property
    def known(self) -> RunState:
        return self._known

    def read(self) -> RunState:
        # An event recorded just now follows the last known one, so there is nothing else to read
        if not self._is_current:
            self._read_on()
        self._is_current = False
        return self._known

    def keep_state(self) -> None:
        """Keep the known state in this process for its next round of the run."""
        if self._last is not None:
            left = self._left if self._left is None or len(self._left) <= MAX_LEFT else None
            kept_states.put(self.run, KeptState(self._known, self._last, left))

    def _read_on(self) -> None:
        if self._last is None and (kept := kept_states.take(self.run)):
            rows = transcript.list_events(self.run.pk, kept.last.seq - 1, _AT_ONCE)
            # The overlap of one row proves that the kept state still belongs to this run
            if rows and kept.ends_with(rows[0]):
                self._known, self._last, self._left = kept.state, rows[0], kept.left
                self._add(rows[1:])
                if len(rows) < _AT_ONCE:
                    return
        while True:
            rows = transcript.list_events(self.run.pk, self._known.last_seq, _AT_ONCE)
            self._add(rows)
            if len(rows) < _AT_ONCE:
                return

    def _add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._known.add(Event(row.seq, row.kind, row.content))
            self._last = row
            if row.kind == "result":
                self._left = None  # The result may be another worker's; if recorded here, the caller sets it

    def _add_recorded(self, row: Row, state: bytes) -> None:
        """Add an event recorded here. If others came in between, it will be read with them."""
        if row.seq == self._known.last_seq + 1:
            self._add([row])
            self._is_current = True
            if row.kind == "result":
                self._left = state

    def append(self, kind: str, payload: Payload, *, state: bytes = b"") -> Event:
        # Images before the event that shows them
        self.images.flush()
        payload = score_end(self.run, kind, payload)
        seen = self._known.last_seq
        # Stated biases are tested on the run's own images before the end is recorded
        if isinstance(payload, Ended) and payload.conclusion.bias:
            payload = add_tests(payload, [each.payload for each in self.read().events])
        if isinstance(payload, Replied):
            # Send the rest, so that browsers have all words before the event
            self._send_draft(payload.text)
        try:
            row = self._conclude(payload, seen) if kind == "concluded" else self._record(kind, payload, state)
        except transcript.RunEnded as error:
            raise LeaseLost(str(error)) from error
        event = Event(row.seq, row.kind, row.content)
        # The agent must read the note before it concludes
        if kind == "concluded" and row.kind == "note":
            self._read_on()
            return event
        counters.EVENTS.labels(kind).inc()
        if isinstance(payload, Replied):
            counters.PROVIDER_ERRORS.inc(len(payload.provider_errors))
        self.show("", 0, 0)
        # After the commit: an event that is rolled back must not stay in the state
        transaction.on_commit(partial(self._add_recorded, row, state))
        return event

    def _record(self, kind: str, payload: Payload, state: bytes = b"") -> Row:
        fence, seconds = self.run.fence, self.seconds()
        return transcript.append(self.run.pk, kind, payload, fence=fence, seconds=seconds, state=state)

    def _conclude(self, payload: Payload, seen: int) -> Row:
        """Record the end. If a note came after the event number `seen`, return the note instead."""
        with transaction.atomic():
            # The lock keeps a note from slipping in between the query and the end
            Run.objects.select_for_update().get(pk=self.run.pk)
            rows = transcript.list_events(self.run.pk, seen, _AT_ONCE)
            note = next((row for row in rows if isinstance(row.content, Note)), None)
            return note or self._record("concluded", payload)

    def record_copied(self) -> None:
        """Called after the events of a fork's parent were copied."""

    def entries(self) -> list[LogEntry]:
        """Return everything logged in the run so far."""
        return [entry for result in self._known.results for entry in result.entries]

    def state(self) -> bytes:
        if self._left is not None:
            return self._left
        ended = self.run.experiments.exclude(status="running").order_by("-number")
        return bytes(ended.values_list("state", flat=True).first() or b"")

    def seconds(self) -> float:
        return self.run.seconds + time.monotonic() - self.began

    def draft(self, text: str) -> None:
        now = time.monotonic()
        # A piece for each word would flood the browsers.
        # Always sent if empty: it removes the draft.
        if text and now - self.drafted < DRAFT_EVERY:
            return
        self._send_draft(text)

    def _send_draft(self, text: str) -> None:
        # Only what is new, since browsers have the rest.
        notify.draft(self.run.pk, text, self.sent if text else 0)
        self.drafted, self.sent = time.monotonic(), len(text)

    def progress(self, what: str, done: int, total: int) -> None:
        if self.is_cancelled():
            raise Cancelled(f"Run {self.run.pk} was stopped.")
        now = time.monotonic()
        # The last report removes the line.
        if done >= total:
            self.show("", done, total)
        elif now - self.reported >= REPORT_EVERY:
            self.show(what, done, total)
            self.reported = now

    def show(self, what: str, done: int, total: int) -> None:
        """Send a report to the viewers. An empty one removes the last."""
        if what or self.showing:
            notify.progress(self.run.pk, what, done, total)
        self.showing = bool(what)

    def explain_outage(self, error: Exception) -> str:
        return explain_outage(error)

    def is_cancelled(self) -> bool:
        """True if a person stopped the run. Raises LeaseLost if this worker must release it."""
        if lease.stopping.is_set() or self.lost.is_set():
            raise LeaseLost(f"This worker lets go of run {self.run.pk}; the next claim continues it.")
        # Seldom: programs ask for every call, and each look is a query.
        if not self.stop and time.monotonic() - self.looked >= LOOK_EVERY:
            self._look()
        return self.stop

    def pausing(self) -> str:
        return self._look()

    def _look(self) -> str:
        """Check whether a person stopped the run; return who asked for a pause. Raises LeaseLost."""
        held = Run.objects.filter(pk=self.run.pk, fence=self.run.fence)
        wanted = held.values_list("pause_requested", "cancel_requested").first()
        if wanted is None:
            # This process was suspended so long that another worker claimed the run
            raise LeaseLost(f"Run {self.run.pk} is held by another worker.")
        pause, self.stop = wanted
        self.looked = time.monotonic()
        return pause
