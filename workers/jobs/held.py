"""Rows that one process works on at a time (jobs, label checks): claimed by compare-and-set, kept by a heartbeat, and
taken over if the worker falls silent. Runs use leases instead (`lease`), which guard every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db.models import Q

from experiments.core.clock import database_now
from experiments.models import Job, LabelCheck
from workers.jobs import lease
from workers.jobs.periodic_thread import PeriodicThread

Held = type[Job] | type[LabelCheck]
"""Models with a status, including "queued" and "running", and the time of the last heartbeat."""
SILENCE = timedelta(seconds=60)
"""Time without a heartbeat after which another worker may claim a row."""
MAX_RECOVERED = 100
"""Maximum number of rows per kind that one recovery enqueues."""


def claim(rows: Held, pk: int, *others: str, **changed: Any) -> bool:
    """Claim a row that is queued, has a status in `others`, or whose worker fell silent, and update columns. False if
    it is done or another worker has it."""
    # By the database's clock, because clocks of machines differ
    lost = Q(status="running", beat__lt=database_now() - SILENCE)
    free = rows.objects.filter(lost | Q(status__in=("queued", *others)), pk=pk)
    # Compare-and-set: the update matches only while the row is free.
    return bool(free.update(status="running", beat=database_now(), **changed))


@contextmanager
def keep_alive(rows: Held, pk: int) -> Iterator[None]:
    """Send heartbeats for the row while the block runs."""
    running = rows.objects.filter(pk=pk, status="running")

    def renew() -> bool:
        running.update(beat=database_now())
        return True

    with PeriodicThread(f"heartbeat-{rows._meta.model_name}-{pk}", lease.HEARTBEAT, renew):
        yield


def recover(rows: Held, ask: Callable[[int], None]) -> None:
    """Enqueue rows whose worker died or whose message Redis may have lost. Doing so twice is harmless."""
    # A row that was enqueued a moment ago is not lost: its heartbeat is fresh.
    silent = rows.objects.filter(beat__lt=database_now() - SILENCE)
    silent.filter(status="running").update(status="queued")
    # A message that comes twice is harmless, because `claim` lets only one worker in.
    # Bounded, so that a recovery ends soon; the next one continues.
    for pk in list(silent.filter(status="queued").values_list("pk", flat=True)[:MAX_RECOVERED]):
        # The new heartbeat keeps the next recovery from enqueuing it again at once
        rows.objects.filter(pk=pk, status="queued").update(beat=database_now())
        ask(pk)
