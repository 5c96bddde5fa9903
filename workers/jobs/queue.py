"""Putting a run into Celery's queue: its id, as JSON, and nothing else. Safe to import in the web process."""

from __future__ import annotations

import logging
from functools import partial

from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from experiments.models import Run

log = logging.getLogger(__name__)


def enqueue(run_id: int) -> None:
    """Enqueue a run's next round once the current transaction is committed.

    With Redis away nothing is lost: the run stays queued in the database, and the sweeper finds it.
    """
    Run.objects.filter(pk=run_id).update(enqueued=timezone.now())
    transaction.on_commit(partial(send, run_id))


def send(run_id: int) -> None:
    from workers.jobs.rounds import advance

    try:
        advance.apply_async((run_id,), retry=False)
    except (OperationalError, OSError) as error:
        log.warning("Run %s could not be enqueued: %s. The sweeper will try again.", run_id, error)
