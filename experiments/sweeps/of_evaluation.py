"""The sweeps of an evaluation, which ask the agent about its units. Only the evaluation controls them, so that no money
is spent on runs whose labels are not scored."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F, Q, QuerySet

from experiments.core.actors import Actor
from experiments.models import Evaluation, RunQueue, Sweep, SweepStatus
from experiments.sweeps import actions

_OVER = (SweepStatus.STOPPED, SweepStatus.DONE)


def list_open(evaluation: Evaluation) -> QuerySet[Sweep]:
    """List those that are not over, the oldest first."""
    return evaluation.sweeps.exclude(status__in=_OVER).order_by("pk")


def resume_runs(evaluation: Evaluation, *, by_workers: bool) -> None:
    """Let its runs be claimed: by any worker, or only by the calling process."""
    for sweep in list_open(evaluation):
        _open(sweep, by_workers=by_workers)


def hold(evaluation: Evaluation, reason: str) -> None:
    """Start no further round; those under way end."""
    for sweep in list_open(evaluation).exclude(status=SweepStatus.PAUSED):
        actions.set_status(sweep, SweepStatus.PAUSED, reason)


def end(actor: Actor, evaluation: Evaluation) -> None:
    """End them for good: a worker stops their runs. The caller checks access."""
    for sweep in list_open(evaluation):
        actions.end(actor, sweep)


def keep_within(evaluation: Evaluation, cost: float | None, seconds: float | None, *, by_workers: bool) -> None:
    """Limit what its sweeps may still use, in US dollars and seconds of work; None for no limit. One that reached such
    a limit continues if the evaluation has more left by now."""
    left = {
        # Limits of a sweep are totals: what it has used is added.
        "cost_limit": None if cost is None else F("cost") + cost,
        "seconds_limit": None if seconds is None else F("seconds") + seconds,
    }
    # Without limits, only rows that had one are written.
    limited = Q() if cost is not None or seconds is not None else ~Q(cost_limit=None, seconds_limit=None)
    list_open(evaluation).filter(limited).update(**left)
    # What they may use was raised above
    for sweep in list_open(evaluation).filter(status=SweepStatus.OUT_OF_BUDGET):
        _open(sweep, by_workers=by_workers)


@transaction.atomic
def _open(sweep: Sweep, *, by_workers: bool) -> None:
    actions.set_status(sweep, SweepStatus.RUNNING)
    # A closed queue keeps workers away: the calling process claims its runs itself
    if not by_workers:
        RunQueue.objects.filter(sweep=sweep).update(enabled=False)
