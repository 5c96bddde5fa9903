"""Putting work into Celery's queues: ids, as JSON, and nothing else. Safe to import in the web process.

With Redis away nothing is lost: a run stays queued in the database, and the sweeper finds it.
"""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from functools import partial
from uuid import uuid4

from celery import current_app
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError
from redis import RedisError

from experiments.models import Job, Run

log = logging.getLogger(__name__)

_OURS = re.compile(r"(\d+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def enqueue(run_id: int, wait: float = 0) -> None:
    """Enqueue a run's next round, to be played in `wait` seconds, once the current transaction is committed."""
    Run.objects.filter(pk=run_id).update(enqueued=timezone.now() + timedelta(seconds=wait))
    transaction.on_commit(partial(send, "workers.jobs.rounds.advance", run_id, wait))


def ask_for(job: str, row: int | None = None) -> None:
    """Have a worker do a job of `workers.jobs.long`, such as "write_exemplars" of the profile with this key, once the
    current transaction is committed. Asking twice is harmless."""
    transaction.on_commit(partial(send, f"workers.jobs.long.{job}", row))


def ask_for_work(job_id: int) -> None:
    """Have a worker do what a `Job` row says. Asking twice is harmless."""
    Job.objects.filter(pk=job_id).update(beat=timezone.now())
    ask_for("work", job_id)


def send(job: str, row: int | None = None, wait: float = 0) -> None:
    """Send a job by name, so that the sender need not import it. The message's id begins with the row's."""
    try:
        args = () if row is None else (row,)
        current_app.send_task(job, args=args, task_id=f"{row or 0}-{uuid4()}", countdown=wait or None, retry=False)
    except (OperationalError, RedisError, OSError) as error:
        log.warning("%s %s could not be enqueued: %s. The sweeper will try again.", job, row or "", error)


def row_of(message_id: str) -> int:
    """The id of the row that a message of `send` is about; 0 for none, and for beat's messages, whose ids are UUIDs."""
    found = _OURS.fullmatch(message_id)
    return int(found[1]) if found else 0
