"""The run log in the database: every step of a run, recorded under the claim of one worker.

A `RunLog` (agent/events.py) over `experiments.core.transcript`, `experiments.core.notify` and the image store.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from django.db import transaction

from experiments.core import notify, transcript
from experiments.core.outages import explain_outage
from experiments.models import Run
from workers.bias.statements import add_tests
from workers.errors import Cancelled, LeaseLost
from workers.jobs import counters, lease
from workers.jobs.functions import score_end
from workers.jobs.images import ImagesInDatabase
from workers.record.events import Ended, Event, ExperimentEnded, Note, Payload, Replied
from workers.record.experiments import LogEntry

DRAFT_EVERY = 0.1
"""Seconds between two pieces of a reply under way."""

REPORT_EVERY = 0.25
"""Seconds between two reports on long work."""

LOOK_EVERY = 0.5
"""Seconds between two looks at whether the run was stopped."""


_AT_ONCE = 200
"""Events read by one query."""


class DatabaseRunLog:
    """For one claim of one run; used by one thread."""

    def __init__(self, run: Run, images: ImagesInDatabase, lost: threading.Event) -> None:
        self.run = run
        self.images = images
        self.lost = lost
        self.began = time.monotonic()
        self.known: list[Event] = []
        self.sent = 0
        self.drafted = self.looked = self.reported = 0.0
        self.stop = self.showing = False

    def events(self) -> Sequence[Event]:
        while True:
            rows = transcript.list_events(self.run.pk, self.known[-1].seq if self.known else 0, _AT_ONCE)
            self.known += [Event(row.seq, row.kind, row.content) for row in rows]
            if len(rows) < _AT_ONCE:
                return self.known

    def append(self, kind: str, payload: Payload, *, state: bytes = b"") -> Event:
        self.images.flush()
        payload = score_end(self.run, kind, payload)
        if isinstance(payload, Ended):
            payload = add_tests(payload, [each.payload for each in self.known])
        if isinstance(payload, Replied):
            self._send_draft(
                payload.text
            )  # what came since the last piece, so that browsers have all words before the event
        with transaction.atomic():
            if kind == "concluded":
                # A note made since the events were last looked at keeps the run from concluding
                Run.objects.select_for_update().get(pk=self.run.pk)
                known = len(self.known)
                for event in self.events()[known:]:
                    if isinstance(event.payload, Note):
                        return event
            try:
                row = transcript.append(
                    self.run.pk, kind, payload, fence=self.run.fence, seconds=self.seconds(), state=state
                )
            except (transcript.LeaseLost, transcript.RunEnded) as error:
                raise LeaseLost(str(error)) from error
        counters.EVENTS.labels(kind).inc()
        if isinstance(payload, Replied):
            counters.PROVIDER_ERRORS.inc(len(payload.provider_errors))
        self.show("", 0, 0)
        event = Event(row.seq, row.kind, row.content)
        if event.seq == (self.known[-1].seq if self.known else 0) + 1:  # else others came between, and are read with it
            self.known.append(event)
        return event

    def record_copied(self) -> None:
        """The run has begun with what was copied from another."""

    def entries(self) -> list[LogEntry]:
        """Everything logged in the run so far."""
        results = (event.payload for event in self.events() if isinstance(event.payload, ExperimentEnded))
        return [entry for result in results for entry in result.entries]

    def state(self) -> bytes:
        ended = self.run.experiments.exclude(status="running").order_by("-number")
        return bytes(ended.values_list("state", flat=True).first() or b"")

    def seconds(self) -> float:
        return self.run.seconds + time.monotonic() - self.began

    def draft(self, text: str) -> None:
        now = time.monotonic()
        if text and now - self.drafted < DRAFT_EVERY:
            return
        self._send_draft(text)

    def _send_draft(self, text: str) -> None:
        notify.draft(self.run.pk, text, self.sent if text else 0)
        self.drafted, self.sent = time.monotonic(), len(text)

    def progress(self, what: str, done: int, total: int) -> None:
        if self.is_cancelled():
            raise Cancelled(f"Run {self.run.pk} was stopped.")
        now = time.monotonic()
        if done >= total:
            self.show("", done, total)
        elif now - self.reported >= REPORT_EVERY:
            self.show(what, done, total)
            self.reported = now

    def show(self, what: str, done: int, total: int) -> None:
        """Send a report to the viewers; an empty one takes the last away, if one is there."""
        if what or self.showing:
            notify.progress(self.run.pk, what, done, total)
        self.showing = bool(what)

    def explain_outage(self, error: Exception) -> str:
        return explain_outage(error)

    def is_cancelled(self) -> bool:
        """Whether a person stopped the run. Raises LeaseLost if this worker must let go of it."""
        if lease.stopping.is_set() or self.lost.is_set():
            raise LeaseLost(f"This worker lets go of run {self.run.pk}; the next claim continues it.")
        now = time.monotonic()
        if not self.stop and now - self.looked >= LOOK_EVERY:
            self.looked = now
            held = Run.objects.filter(pk=self.run.pk, fence=self.run.fence)
            stop = held.values_list("cancel_requested", flat=True).first()
            if stop is None:  # this process stood still for so long that somebody else claimed it
                raise LeaseLost(f"Run {self.run.pk} is held by another worker.")
            self.stop = stop
        return self.stop

    def pausing(self) -> str:
        return Run.objects.values_list("pause_requested", flat=True).get(pk=self.run.pk)
