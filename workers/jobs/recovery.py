"""The sweeper: brings back runs that nobody works on. Beat runs it every 20 s, a worker once when it starts.

A run is lost if its worker died (the lease ran out) or if Redis lost the message; either way it is active in the
database, not leased, and not in the queue.
"""

from __future__ import annotations

import json
import logging
from datetime import timedelta

from celery import current_app, shared_task
from django.utils import timezone

from experiments.core.queue import enqueue, row_of
from experiments.models import Run
from workers.jobs import exchange, jail, long, thumbnails
from workers.record.statuses import ACTIVE

log = logging.getLogger(__name__)

GRACE = timedelta(seconds=10)
"""How long a message may be on its way before it counts as lost."""


@shared_task(name="workers.jobs.recovery.recover_runs")
def recover_runs() -> None:
    """Enqueue every lost run again, and what people asked for on the settings pages."""
    jail.publish_report()
    now = timezone.now()
    lost = [
        run.pk
        for run in Run.objects.filter(status__in=ACTIVE, enqueued__lt=now - GRACE).only("pk", "lease_expires")
        if not run.is_leased(now)
    ]
    for run_id in set(lost) - list_queued() if lost else ():
        log.warning("Run %s was lost and is enqueued again.", run_id)
        enqueue(run_id)
    long.recover_jobs()
    long.recover_checks()
    thumbnails.request_missing()
    exchange.remove_expired()


def list_queued() -> set[int]:
    """Ids of the runs whose next round waits in Redis."""
    with current_app.connection_for_read() as connection:
        messages = connection.default_channel.client.lrange("rounds", 0, -1)  # type: ignore[attr-defined]
    return {row_of(json.loads(message)["headers"]["id"]) for message in messages}
