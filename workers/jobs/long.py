"""Celery tasks for long jobs: the catalogue of plug-ins, exemplars of units for pages, and jobs that users start.

A job that a user starts has a `Job` row, and the first worker to claim it does it. It can be stopped and resumed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from celery import shared_task
from django.conf import settings
from django.db import transaction

from experiments.core import notify, outbox
from experiments.core.clock import database_now
from experiments.core.logs import logging_about
from experiments.core.outages import explain_outage
from experiments.core.queue import ask_for, ask_for_work
from experiments.models import Evaluation, Job, JobKind, JobStatus, LabelCheck, UnitProfile
from experiments.models.job import MOVING
from workers.errors import Cancelled, MaiaError
from workers.jobs import held, lease
from workers.protocols import Progress

log = logging.getLogger(__name__)

CATALOGUE = "catalogue"
"""Topic under which pages see the progress of `write_catalogue`."""
TELL_EVERY = 0.5
"""Interval between reports, and between checks for a stop, in seconds."""


@shared_task(name="workers.jobs.long.write_catalogue")
def write_catalogue() -> None:
    """Examine every plug-in, and save what is available and what is missing. Can be repeated."""
    from workers.jobs import catalogue

    try:
        catalogue.write_all(_reporter(CATALOGUE))
    except Cancelled:
        log.info("The worker stops before it has looked at every plug-in; the next one looks again.")


@shared_task(name="workers.jobs.long.write_exemplars")
def write_exemplars(profile_id: int) -> None:
    """Save the exemplars of one unit over one dataset, raw and masked. Builds the index if needed."""
    from workers.jobs.unit_profiles import write

    profile = UnitProfile.objects.filter(pk=profile_id, written=None).first()
    if profile is None:
        return
    try:
        write(profile, _reporter(f"profile:{profile_id}"))
    except Cancelled:
        return
    except MaiaError as error:
        UnitProfile.objects.filter(pk=profile_id).update(problem=str(error))
    except Exception as error:
        UnitProfile.objects.filter(pk=profile_id).update(problem=f"{type(error).__name__}: {error}")
        # Raised again, so that the worker's log has the traceback.
        raise


@shared_task(name="workers.jobs.long.write_neighbours")
def write_neighbours(profile_id: int) -> None:
    """Save the units most similar to one unit over one dataset. Fast, because the index has all the data."""
    from workers.jobs.unit_profiles import write_neighbours as write

    if profile := UnitProfile.objects.select_related("unit__layer__model", "dataset").filter(pk=profile_id).first():
        write(profile)


@shared_task(name="workers.jobs.long.compare_labels")
def compare_labels(asked: int) -> None:
    """Find labels close in meaning to a search text."""
    from workers.jobs.label_nearness import answer

    answer(asked)


@shared_task(name="workers.jobs.long.check_label")
def check_label(check_id: int) -> None:
    """Check a label on images that its author never saw. Does nothing if it is done or another worker has it."""
    from workers.jobs.label_checks.check import run_check

    with suppress(Cancelled):
        run_check(check_id, _reporter(f"check:{check_id}"))


@shared_task(name="workers.jobs.long.write_thumbnails")
def write_thumbnails() -> None:
    """Create missing thumbnails, some at a time. Can be repeated."""
    from workers.jobs import thumbnails

    thumbnails.write_missing()


@shared_task(name="workers.jobs.long.prune")
def prune() -> None:
    """Remove unused data once a day, if the settings say after how many days."""
    from experiments.maintenance.backup_format import BackupError
    from experiments.maintenance.pruning import prune as remove_unused

    try:
        log.info("Pruned: %s", remove_unused(settings.KEEP_UNUSED_DAYS, _check_shutdown, dry=False))
    except BackupError as error:
        log.warning("Nothing was pruned: %s", error)


def _check_shutdown(what: str, done: int, total: int) -> None:
    """Ignore progress, and raise Cancelled between two steps if the worker shuts down."""
    del what, done, total
    if lease.stopping.is_set():
        raise Cancelled("The worker stops.")


@shared_task(name="workers.jobs.long.work")
def work(job_id: int) -> None:
    """Claim a job that a user started, and do it. Does nothing if it is done, stopped, or claimed by another worker."""
    if held.claim(Job, job_id, result=""):
        with logging_about(job=job_id):
            do(Job.objects.get(pk=job_id))


def do(job: Job, progress: Progress | None = None) -> tuple[JobStatus, str]:
    """Do a job that this process has claimed. Return and save its status and a message for the user."""
    # Without heartbeats, the recovery job would hand it to another worker
    with held.keep_alive(Job, job.pk):
        status, result = outcome(job, progress)
    # In one transaction, so that an evaluation's end is announced exactly once.
    with transaction.atomic():
        running = Job.objects.filter(pk=job.pk, status=JobStatus.RUNNING)
        evaluation = Evaluation.objects.filter(job=job.pk).first() if status not in MOVING else None
        # Only if it is still running: another worker may have taken it over meanwhile
        if running.update(status=status, result=result, beat=database_now()) and evaluation:
            outbox.announce_evaluation(evaluation, status)
    return status, result


def outcome(job: Job, progress: Progress | None = None) -> tuple[JobStatus, str]:
    """Do the work. Return its status and a message for the user. Progress goes to the pages, or to `progress`."""
    from workers.jobs import causal, circuit_graphs, circuits, exchange, judging, registration, sparse, sweeps
    from workers.jobs.evaluations import engine

    does = {
        JobKind.MODEL: registration.add_model,
        JobKind.DATASET: registration.add_dataset,
        JobKind.INDEX: registration.index,
        JobKind.EXPORT: exchange.write_export,
        JobKind.IMPORT: exchange.take_import,
        JobKind.JUDGE: judging.judge,
        JobKind.EVALUATION: engine.evaluate,
        JobKind.SWEEP: sweeps.run_sweep_job,
        JobKind.SPARSE: sparse.train_for,
        JobKind.MEASURE: sparse.measure_for,
        JobKind.CAUSAL: causal.check_for,
        JobKind.GRAPH: circuit_graphs.graph_for,
        JobKind.CIRCUIT: circuits.find_for,
    }
    stopped = Job.objects.filter(pk=job.pk, stop_requested=True)
    try:
        # Reports of a user's job stay longer: its page may be opened later.
        tell = progress or _reporter(job.topic, stopped.exists, notify.KEPT_SECONDS)
        return JobStatus.DONE, does[JobKind(job.kind)](job, tell)
    except Cancelled:
        # A stop by the user is final; a shutdown is not
        if lease.stopping.is_set():
            return JobStatus.QUEUED, "Its worker shut down; the next one resumes it."
        return JobStatus.STOPPED, "Stopped. What was done is kept."
    except Exception as error:
        if reason := explain_outage(error):  # The next worker that claims it tries again
            log.warning("%s waits: %s", job, reason)
            return JobStatus.QUEUED, reason
        if isinstance(error, MaiaError):
            return JobStatus.FAILED, str(error)
        log.exception("%s failed.", job)
        return JobStatus.FAILED, f"{type(error).__name__}: {error}. The worker's output says more."


def _reporter(topic: str, is_stopped: Callable[[], bool] = lambda: False, kept: int = 120) -> Progress:
    """Return a callback that reports progress to pages, stored for `kept` seconds. It raises Cancelled if the worker
    shuts down or the user stops the job."""
    reported = 0.0

    def report(what: str, done: int, total: int) -> None:
        nonlocal reported
        now = time.monotonic()
        is_due = done >= total or now - reported >= TELL_EVERY
        # A shutdown is a flag and costs nothing to look at; a stop is a query, so it waits for the next report.
        if lease.stopping.is_set() or (is_due and is_stopped()):
            raise Cancelled(f"The work on {topic} was stopped.")
        if not is_due:
            return
        reported = now
        notify.keep_report(topic, what, done, total, seconds=kept)

    return report


def recover() -> None:
    """Enqueue jobs and label checks whose worker died."""
    held.recover(Job, ask_for_work)
    held.recover(LabelCheck, partial(ask_for, "check_label"))
