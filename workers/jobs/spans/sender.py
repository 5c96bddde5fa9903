"""Send spans of played rounds from a thread of the worker, so that no run waits for the collector.

If the worker ends first they are lost: `manage.py export_spans` sends the spans of any run again, with the same ids.
"""

from __future__ import annotations

import logging
import threading

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection

from experiments.core.otel_package import explain_missing_package
from experiments.models import Run
from workers.jobs import counters
from workers.jobs.spans.making import spans_of
from workers.jobs.spans.otlp import Collector, CollectorDown, SpansRefused

log = logging.getLogger(__name__)

MAX_WAITING = 1_000
"""Maximum number of waiting runs. Beyond it, the oldest is dropped."""
RETRY_SECONDS = 30.0
"""Delay before a collector that is down is tried again, in seconds."""
STOP_SECONDS = 5.0
"""Time for sending waiting spans when the worker ends, in seconds."""

senders: list[SpanSender] = []
"""The sender of this process, while its worker runs and a collector is configured."""


def note_played(run_id: int, seq: int) -> None:
    """Queue spans of a run that ended after event number `seq`. Fast, and never fails."""
    for sender in senders:
        sender.add(run_id, seq)


def send_spans(collector: Collector, run: Run, seq: int = 0) -> tuple[int, int]:
    """Send a run's spans that ended after event number `seq`. Return their number and bytes.

    Raises CollectorDown, SpansRefused.
    """
    # All events, because spans of later ones refer to earlier ones
    rows = spans_of(run, list(run.events.order_by("seq")), with_content=settings.OTEL_CONTENT)
    new = [each for each in rows if each.seq > seq]
    return len(new), collector.send(new)


class SpanSender:
    """Accepts runs by `add` from any thread, and sends their spans between `start` and `stop`."""

    def __init__(self, collector: Collector, retry_seconds: float = RETRY_SECONDS) -> None:
        self._collector, self._retry_seconds = collector, retry_seconds
        # Only numbers wait in memory; spans are created from the database when they are sent.
        self._waiting: dict[int, int] = {}
        """Run -> event after which its spans must be sent, the oldest first."""
        self._changed = threading.Condition()
        self._is_busy = self._over = False
        self._is_down = False
        self._thread = threading.Thread(target=self._go_on, name="spans", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Send waiting spans for a few seconds at most."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        self._thread.join(STOP_SECONDS)

    def add(self, run_id: int, seq: int) -> None:
        with self._changed:
            self._put(run_id, seq)
            self._changed.notify_all()

    def wait_until_idle(self, seconds: float) -> bool:
        """Wait until nothing is waiting or being sent. Return False after `seconds`."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._waiting or self._is_busy), seconds)

    def _put(self, run_id: int, seq: int) -> None:
        # A run may be added again while it waits: keep the earlier start
        self._waiting[run_id] = min(seq, self._waiting.get(run_id, seq))
        if len(self._waiting) > MAX_WAITING:
            lost = next(iter(self._waiting))
            del self._waiting[lost]
            counters.SPAN_FAILURES.inc()
            log.warning("Spans of run %d are given up: over %d runs wait for the collector.", lost, MAX_WAITING)

    def _go_on(self) -> None:
        try:
            while (found := self._take()) is not None:
                close_old_connections()
                self._send(*found)
        finally:
            connection.close()

    def _take(self) -> tuple[int, int] | None:
        """Remove and return the oldest waiting run; None once the worker ends."""
        with self._changed:
            self._is_busy = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting or self._over)
            # At the end, waiting spans get one try, but not if the collector is known to be down
            if not self._waiting or (self._over and self._is_down):
                return None
            self._is_busy = True
            run_id = next(iter(self._waiting))
            # Removed while it is sent, so that a later round can add it again.
            return run_id, self._waiting.pop(run_id)

    def _send(self, run_id: int, seq: int) -> None:
        try:
            run = Run.objects.filter(pk=run_id).first()
            sent, _ = send_spans(self._collector, run, seq) if run else (0, 0)
        except (CollectorDown, DatabaseError) as error:
            self._hold_on(run_id, seq, error)
        except SpansRefused as error:
            counters.SPAN_FAILURES.inc()
            log.warning("%s refused spans of run %d, which are given up: %s.", self._collector.name, run_id, error)
        except Exception:
            counters.SPAN_FAILURES.inc()
            log.exception("Spans of run %d could not be made and are given up.", run_id)
        else:
            counters.SPANS.inc(sent)
            self._is_down = False

    def _hold_on(self, run_id: int, seq: int, error: Exception) -> None:
        """Put a run back and leave the collector alone for a while. The log mentions each outage once."""
        counters.SPAN_FAILURES.inc()
        if not self._is_down:
            log.warning(
                "Spans of run %d could not be sent to %s: %s. They are tried again every %g s; runs continue.",
                *(run_id, self._collector.name, error, self._retry_seconds),
            )
        self._is_down = True
        with self._changed:
            self._put(run_id, seq)
            # Waits under the condition, so that the end of the worker wakes it.
            self._changed.wait_for(lambda: self._over, self._retry_seconds)


def start_sender() -> None:
    """Start sending spans, if a collector is configured and the package is installed."""
    if settings.OTEL_ENDPOINT and not explain_missing_package():
        senders[:] = [SpanSender(Collector.of_settings())]
        senders[0].start()


def stop_sender() -> None:
    # Popped first, so that no more runs are added.
    while senders:
        senders.pop().stop()
