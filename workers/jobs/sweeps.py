"""A sweep's runs are laid out; those of one that was stopped are stopped, those that are to be tried again go on."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied

from experiments.core import sweep_totals
from experiments.core.actors import Actor
from experiments.models import Job, Sweep
from experiments.sweeps import layout
from workers.errors import RequestError
from workers.protocols import Progress


def lay_out(job: Job, progress: Progress) -> str:
    """Do what is left of the sweep that the job is of. Done again after a worker died, it goes on where that was.

    Raises RequestError if its person may not ask any more, Cancelled.
    """
    sweep = Sweep.objects.filter(job=job).first()
    if sweep is None:
        return "Somebody has asked for something else of this sweep meanwhile."
    by = Actor(job.asked_by or sweep.owner)
    try:
        make_runs(sweep, progress)
        _stop_runs(by, sweep, progress)
        _retry_runs(by, sweep, progress)
    except PermissionDenied as error:
        raise RequestError(f"{error} An admin can stop the sweep, or give the role back.") from error
    sweep_totals.finish_if_last(sweep.pk)
    return f"{sweep.planned:,} runs are laid out."


def make_runs(sweep: Sweep, progress: Progress) -> None:
    """Lay out what is left. Raises PermissionDenied if its owner may not ask any more, Cancelled."""
    plan, made = layout.plan_runs(sweep), sweep.laid_out
    while made < len(plan):
        progress("Laying out runs", made, len(plan))
        made = layout.lay_out_some(sweep.pk, plan)


def _stop_runs(actor: Actor, sweep: Sweep, progress: Progress) -> None:
    while left := layout.stop_some(actor, sweep.pk):
        progress("Stopping runs", sweep.planned - left, sweep.planned)


def _retry_runs(actor: Actor, sweep: Sweep, progress: Progress) -> None:
    asked, last = sweep.retry_asked, 0
    while after := layout.retry_some(actor, sweep.pk, last):
        last = after
        progress("Trying runs again", 0, sweep.planned)
    layout.end_retry(sweep.pk, asked)
