"""Recover orphaned work. Beat runs it every 20 s, and each worker once at its start.

Runs of dead workers need no recovery: they are claimed again when their lease expires.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from celery import shared_task

from experiments.core.clock import database_now
from experiments.core.queue import enqueue
from experiments.models import Run
from workers.jobs import claims, exchange, jail, long, thumbnails

log = logging.getLogger(__name__)

GRACE = timedelta(seconds=60)
"""Time that a foreground process may take to start a run that workers must not play."""


@shared_task(name="workers.jobs.recovery.recover")
def recover() -> None:
    """Put orphaned runs into their queue, and enqueue lost jobs."""
    # The report expires after some minutes.
    jail.publish_report()
    for run in _list_orphaned():
        log.warning("Run %s was orphaned and is queued again.", run.pk)
        enqueue(run.pk)
    long.recover()
    thumbnails.request_missing()
    exchange.remove_expired()


def _list_orphaned() -> list[Run]:
    """Return active runs without a queue and without a valid lease, after the grace period."""
    # A run just created in the foreground also has no queue; it gets a minute to start
    return list(claims.list_claimable().filter(run_queue=None, due__lt=database_now() - GRACE).only("pk"))
