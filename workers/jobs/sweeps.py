"""Run a sweep's job: create its runs, stop those of a stopped sweep, resume those to retry."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied

from experiments.core import sweep_totals
from experiments.core.actors import Actor
from experiments.models import Job, Sweep
from experiments.sweeps import create_runs
from workers.errors import RequestError
from workers.protocols import Progress


def run_sweep_job(job: Job, progress: Progress) -> str:
    """Do what is left of the job's sweep. After a worker died, another call resumes it.

    Raises RequestError if its person may no longer start runs, Cancelled.
    """
    sweep = Sweep.objects.filter(job=job).first()
    if sweep is None:
        return "This job was replaced by a newer one of the sweep."
    by = Actor(job.asked_by or sweep.owner)
    try:
        make_runs(sweep, progress)
        _stop_runs(by, sweep, progress)
        _retry_runs(by, sweep, progress)
    except PermissionDenied as error:
        raise RequestError(f"{error} An admin can stop the sweep, or give the role back.") from error
    sweep_totals.finish_if_last(sweep.pk)
    return f"{sweep.planned:,} runs are created."


def make_runs(sweep: Sweep, progress: Progress) -> None:
    """Create the missing runs. Raises PermissionDenied if its owner may no longer start runs, Cancelled."""
    # `created_runs` counts the runs made so far, so an interrupted job neither skips nor repeats any
    plan, made = create_runs.plan_runs(sweep), sweep.created_runs
    while made < len(plan):
        progress("Creating runs", made, len(plan))
        made = create_runs.create_next_batch(sweep.pk, plan)


def _stop_runs(actor: Actor, sweep: Sweep, progress: Progress) -> None:
    while left := create_runs.stop_some(actor, sweep.pk):
        progress("Stopping runs", sweep.planned - left, sweep.planned)


def _retry_runs(actor: Actor, sweep: Sweep, progress: Progress) -> None:
    asked, last = sweep.retry_asked, 0
    while after := create_runs.retry_some(actor, sweep.pk, last):
        last = after
        progress("Trying runs again", 0, sweep.planned)
    # Only this request: another one may have come meanwhile.
    create_runs.end_retry(sweep.pk, asked)
