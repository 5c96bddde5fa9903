"""Claims on runs: one worker at a time, by compare-and-set, with a lease that lapses and a fencing number that grows.

Leases are told by the database's clock, since those of machines differ. Called by `rounds` and by the command line. A
worker that is asked to stop says so here (`stopping`).
"""

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

from experiments.core.clock import tell_time
from experiments.models import Run
from workers.jobs.routine import Routine
from workers.record.statuses import ACTIVE, Status

log = logging.getLogger(__name__)

LASTS = timedelta(seconds=30)
"""How long a lease is good for without a heartbeat."""

MAX_CLAIMS = 5
"""Claims without any event in between, after which a run is taken to kill its workers."""

HEARTBEAT = 10.0
"""Seconds between renewals."""

stopping = threading.Event()
"""Set when this process is asked to stop: rounds under way unwind and are continued by the next claim."""


def claim(run_id: int) -> Run | None:
    """Take the run, or None if it has ended, waits for a person, or is held by a worker that is alive."""
    free = Q(lease_expires__isnull=True) | Q(lease_expires__lte=tell_time())
    # Names this thread of this process, for the people who read the run's row
    taken = Run.objects.filter(free, pk=run_id, status__in=ACTIVE).update(
        status=Status.RUNNING,
        lease_worker=f"{socket.gethostname()}:{os.getpid()}:{threading.get_ident() % 100_000}"[:100],
        lease_expires=tell_time() + LASTS,
        taken=tell_time(),
        held_up="",
        fence=F("fence") + 1,
        claims=F("claims") + 1,
    )
    return Run.objects.get(pk=run_id) if taken else None


@contextmanager
def hold_lease(run: Run) -> Iterator[threading.Event]:
    """Keep the lease of a claimed run alive; give it back at the end. Yields an event that is set once it is lost."""
    lost = threading.Event()
    try:
        with Routine(f"heartbeat-{run.pk}", HEARTBEAT, partial(renew, run, lost)):
            yield lost
    finally:
        # Given back by a worker that is alive: it is not this run that kills workers
        held = Run.objects.filter(pk=run.pk, fence=run.fence)
        held.update(lease_worker="", lease_expires=None, claims=0, due=Greatest("due", tell_time()))


def renew(run: Run, lost: threading.Event) -> bool:
    """Renew; False once the run belongs to somebody else."""
    try:
        renewed = Run.objects.filter(pk=run.pk, fence=run.fence).update(lease_expires=tell_time() + LASTS)
    except DatabaseError as error:  # a lapse is survived: the fence guards every step
        log.warning("The lease of run %s could not be renewed: %s", run.pk, error)
        return True
    if not renewed:
        lost.set()
    return bool(renewed)
