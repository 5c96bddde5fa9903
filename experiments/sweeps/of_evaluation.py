"""The sweeps of an evaluation: they ask the agent about its units. The evaluation alone steers them, so that nobody
pays for runs whose labels nobody scores."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F, Q, QuerySet

from experiments.core.actors import Actor
from experiments.models import Evaluation, Flow, Sweep, SweepStatus
from experiments.sweeps import actions

_OVER = (SweepStatus.STOPPED, SweepStatus.DONE)


def list_open(evaluation: Evaluation) -> QuerySet[Sweep]:
    """Those that are not over, the oldest first."""
    return evaluation.sweeps.exclude(status__in=_OVER).order_by("pk")


def go_on(evaluation: Evaluation, *, by_workers: bool) -> None:
    """Have its runs claimed from now on: by any worker, or else by the process that calls, alone."""
    for sweep in list_open(evaluation):
        _open(sweep, by_workers=by_workers)


def hold(evaluation: Evaluation, reason: str) -> None:
    """Have no further round begin; those under way end."""
    for sweep in list_open(evaluation).exclude(status=SweepStatus.PAUSED):
        actions.set_status(sweep, SweepStatus.PAUSED, reason)


def end(by: Actor, evaluation: Evaluation) -> None:
    """Stop them for good: a worker ends their runs. Access is checked by the caller."""
    for sweep in list_open(evaluation):
        actions.end(by, sweep)


def keep_within(evaluation: Evaluation, cost: float | None, seconds: float | None, *, by_workers: bool) -> None:
    """Have its sweeps stop by themselves once they took so much more, in US dollars and seconds of work; None for no
    limit. One that stopped so goes on if the evaluation has more left by now."""
    left = {
        "cost_limit": None if cost is None else F("cost") + cost,
        "seconds_limit": None if seconds is None else F("seconds") + seconds,
    }
    limited = Q() if cost is not None or seconds is not None else ~Q(cost_limit=None, seconds_limit=None)
    list_open(evaluation).filter(limited).update(**left)
    for sweep in list_open(evaluation).filter(status=SweepStatus.OUT_OF_BUDGET):
        _open(sweep, by_workers=by_workers)


@transaction.atomic
def _open(sweep: Sweep, *, by_workers: bool) -> None:
    actions.set_status(sweep, SweepStatus.RUNNING)
    if not by_workers:
        Flow.objects.filter(sweep=sweep).update(open=False)
