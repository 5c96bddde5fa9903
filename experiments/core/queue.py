"""Enqueue runs and background jobs for workers.

A run goes into its queue in the database, from which any worker claims it. A long job goes into Celery's queue, as
its id only. Safe to import in the web process. Nothing is lost if Redis is away: workers poll for runs, and the
recovery job finds the jobs.
"""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from functools import partial
from uuid import uuid4

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError
from redis import RedisError

from experiments.core import notify
from experiments.core.clock import database_now
from experiments.models import Job, Run, RunQueue

log = logging.getLogger(__name__)

_AWAY = (OperationalError, RedisError, OSError)
_OURS = re.compile(r"(\d+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def enqueue(run_id: int, wait: float = 0) -> None:
    """Put a run into the queue of its sweep or of its owner, to be claimed in `wait` seconds, and ring the bell
    once the current transaction is committed."""
    due = database_now() + timedelta(seconds=wait)
    run = Run.objects.select_related("run_queue").only("owner_id", "sweep_id", "run_queue__id").get(pk=run_id)
    Run.objects.filter(pk=run_id).update(due=due, run_queue=run.run_queue_id or run_queue_of(run).pk)
    # After the commit: a worker that looks earlier does not see the change.
    transaction.on_commit(wake_workers)


def run_queue_of(run: Run) -> RunQueue:
    """Return the queue in which a run waits."""
    if run.sweep_id:
        return RunQueue.objects.get_or_create(sweep_id=run.sweep_id, defaults={"owner_id": run.owner_id})[0]
    return RunQueue.objects.get_or_create(owner_id=run.owner_id, sweep=None)[0]


def wake_workers() -> None:
    """Wake the threads of all workers that wait for runs. They also poll, so a lost bell costs only a few seconds."""
    if notify.muted.is_set():  # runs in the foreground, perhaps without Redis
        return
    try:
        current_app.control.broadcast("ring")
    except _AWAY as error:
        log.warning("No worker could be woken: %s. They look by themselves every few seconds.", error)


def ask_for(job: str, row: int | None = None) -> None:
    """Ask a worker to do a job of `workers.jobs.long`, such as "write_exemplars" of the profile with this key, once
    the current transaction is committed. Asking twice is harmless."""
    transaction.on_commit(partial(send, f"workers.jobs.long.{job}", row))


def ask_for_work(job_id: int) -> None:
    """Ask a worker to do what a `Job` row says. Asking twice is harmless."""
    # The recovery job asks again for jobs without a recent heartbeat: this one is young.
    Job.objects.filter(pk=job_id).update(beat=database_now())
    ask_for("work", job_id)


def send(job: str, row: int | None = None) -> None:
    """Send a job by name, so that the sender need not import it. The message's id begins with the row's id."""
    try:
        args = () if row is None else (row,)
        # No retry: a request does not wait for Redis.
        current_app.send_task(job, args=args, task_id=f"{row or 0}-{uuid4()}", retry=False)
    except _AWAY as error:
        log.warning("%s %s could not be enqueued: %s. The recovery job will try again.", job, row or "", error)


def row_of(message_id: str) -> int:
    """Return the id of the row that a message of `send` is about; 0 for none, and for beat's messages, whose ids
    are UUIDs."""
    found = _OURS.fullmatch(message_id)
    return int(found[1]) if found else 0
