"""Claims on runs: one worker at a time, by compare-and-set, with a lease that expires and a fencing number that
grows."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial

from django.db import DatabaseError
from django.db.models import F, Q
from django.db.models.functions import Greatest

from experiments.core.clock import database_now
from experiments.models import Run
from workers.jobs.periodic_thread import PeriodicThread
from workers.record.statuses import ACTIVE, Status

log = logging.getLogger(__name__)

LASTS = timedelta(seconds=30)
"""Duration of a lease without a heartbeat."""

MAX_CLAIMS = 5
"""Maximum number of claims without any event in between. More mean that the run kills its workers."""

HEARTBEAT = 10.0
"""Interval between renewals, in seconds."""

stopping = threading.Event()
"""Set when this process shuts down: its rounds stop, and the next claim resumes them."""


def claim(run_id: int) -> Run | None:
    """Claim the run; None if it has ended, waits for a person, or has a valid lease."""
    # By the clock of the database: those of the machines may differ.
    free = Q(lease_expires__isnull=True) | Q(lease_expires__lte=database_now())
    # Names host, process and thread, for people who read the row
    # Compare-and-set: the update matches only while the run is free.
    taken = Run.objects.filter(free, pk=run_id, status__in=ACTIVE).update(
        status=Status.RUNNING,
        lease_worker=f"{socket.gethostname()}:{os.getpid()}:{threading.get_ident() % 100_000}"[:100],
        lease_expires=database_now() + LASTS,
        taken=database_now(),
        waiting_reason="",
        # Steps recorded under an older fence are refused from now on
        fence=F("fence") + 1,
        claims=F("claims") + 1,
    )
    return Run.objects.get(pk=run_id) if taken else None


@contextmanager
def hold_lease(run: Run) -> Iterator[threading.Event]:
    """Renew the lease of a claimed run while the block runs, then release it. Yields an event, set when the lease is
    lost."""
    lost = threading.Event()
    try:
        with PeriodicThread(f"heartbeat-{run.pk}", HEARTBEAT, partial(renew, run, lost)):
            yield lost
    finally:
        # This worker is alive, so the run does not kill workers: reset the count of claims
        held = Run.objects.filter(pk=run.pk, fence=run.fence)
        held.update(lease_worker="", lease_expires=None, claims=0, due=Greatest("due", database_now()))


def renew(run: Run, lost: threading.Event) -> bool:
    """Renew the lease. Return False if another worker has the run."""
    try:
        # Only with this fence: a later claim must not be prolonged.
        renewed = Run.objects.filter(pk=run.pk, fence=run.fence).update(lease_expires=database_now() + LASTS)
    except DatabaseError as error:  # Not fatal: even if the lease expires, the fence guards every step
        log.warning("The lease of run %s could not be renewed: %s", run.pk, error)
        return True
    if not renewed:
        lost.set()
    return bool(renewed)
