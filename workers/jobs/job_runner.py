"""Work that people ask for on the settings pages: a `Job` row each, done by whoever claims it first.

It can be stopped, and asked for again: an index goes on where it was. A worker that dies leaves a row without a
heartbeat, which the sweeper puts back into the queue.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial

from django.utils import timezone

from experiments.core import notify
from experiments.core.queue import ask_for_work
from experiments.models import Job
from experiments.models.job import JobKind, JobStatus
from workers.errors import Cancelled, MaiaError
from workers.jobs import lease
from workers.jobs.routine import Routine

log = logging.getLogger(__name__)

LOOK_EVERY = 0.5
"""Seconds between two looks at whether somebody stopped the work, and between two reports."""

SILENCE = timedelta(seconds=60)
"""A job of which nothing was heard for so long is enqueued again."""


def work(job_id: int) -> None:
    """Claim the job and do it. Nothing if it is done, stopped, or somebody else's."""
    if not Job.objects.filter(pk=job_id, status=JobStatus.QUEUED).update(
        status=JobStatus.RUNNING, beat=timezone.now(), result=""
    ):
        return
    job = Job.objects.get(pk=job_id)
    with keep_alive(job):
        status, result = outcome(job)
    Job.objects.filter(pk=job_id, status=JobStatus.RUNNING).update(status=status, result=result, beat=timezone.now())


def outcome(job: Job) -> tuple[JobStatus, str]:
    """Do the work; how it ended, and what a person should know of it."""
    from workers.jobs import exchange, judging, registration

    does = {
        JobKind.MODEL: registration.add_model,
        JobKind.DATASET: registration.add_dataset,
        JobKind.INDEX: registration.index,
        JobKind.EXPORT: exchange.write_export,
        JobKind.IMPORT: exchange.take_import,
        JobKind.JUDGE: judging.judge,
    }
    try:
        return JobStatus.DONE, does[JobKind(job.kind)](job, Reporter(job))
    except Cancelled:
        if lease.stopping.is_set():
            return JobStatus.QUEUED, "Its worker stopped; the next one goes on."
        return JobStatus.STOPPED, "Stopped. What was done is kept."
    except MaiaError as error:
        return JobStatus.FAILED, str(error)
    except Exception as error:
        log.exception("%s failed.", job)
        return JobStatus.FAILED, f"{type(error).__name__}: {error}. The worker's output says more."


class Reporter:
    """A `Progress` for one job: tells the pages how far it is, and raises Cancelled once it is to stop."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.looked = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if done < total and now - self.looked < LOOK_EVERY:
            return
        self.looked = now
        if lease.stopping.is_set() or Job.objects.filter(pk=self.job.pk, stop_requested=True).exists():
            raise Cancelled(f"Job {self.job.pk} was stopped.")
        notify.keep_report(self.job.topic, what, done, total)


@contextmanager
def keep_alive(job: Job) -> Iterator[None]:
    """Show that somebody is at it, for as long as the block takes."""
    with Routine(f"heartbeat-job-{job.pk}", lease.HEARTBEAT, partial(renew, job)):
        yield


def renew(job: Job) -> bool:
    Job.objects.filter(pk=job.pk, status=JobStatus.RUNNING).update(beat=timezone.now())
    return True


def recover_jobs() -> None:
    """Enqueue jobs again whose worker died, or whose message Redis may have lost; doing that twice is harmless."""
    silent = Job.objects.filter(beat__lt=timezone.now() - SILENCE)
    silent.filter(status=JobStatus.RUNNING).update(status=JobStatus.QUEUED)
    for job in silent.filter(status=JobStatus.QUEUED):
        ask_for_work(job.pk)
