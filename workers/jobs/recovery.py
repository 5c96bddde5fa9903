"""Brings back what nobody works on. Beat runs it every 20 s, a worker once when it starts.

Runs are claimed from the database, so one whose worker died is claimed again once its lease has lapsed. What is left to
do here: runs that wait in nobody's flow, since whoever played them in the foreground is gone, and jobs whose message
Redis lost.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from celery import shared_task

from experiments.core.clock import tell_time
from experiments.core.queue import enqueue
from experiments.models import Run
from workers.jobs import claims, exchange, jail, long, thumbnails

log = logging.getLogger(__name__)

GRACE = timedelta(seconds=60)
"""How long somebody may take to begin with a run that no worker is to play."""


@shared_task(name="workers.jobs.recovery.recover")
def recover() -> None:
    """Put forsaken runs into their flow, and have forgotten jobs done."""
    jail.publish_report()
    for run in _list_forsaken():
        log.warning("Run %s was forsaken and is queued again.", run.pk)
        enqueue(run.pk)
    long.recover()
    thumbnails.request_missing()
    exchange.remove_expired()


def _list_forsaken() -> list[Run]:
    """Active runs that are in no flow and that nobody holds, by now."""
    return list(claims.list_claimable().filter(flow=None, due__lt=tell_time() - GRACE).only("pk"))
