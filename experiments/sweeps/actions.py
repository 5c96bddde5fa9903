"""Control sweeps: start, pause, resume, stop, change budget or priority; retry failures.

While a sweep's queue is open, workers claim its runs. Closing it lets rounds under way end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from experiments.core import audit, outbox, queue
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.errors import InvalidFields, InvalidInput, StateConflict
from experiments.core.sweep_totals import BUDGETS, MAX_TOKENS, exceeded_budget_message
from experiments.models import Job, JobKind, Role, RunQueue, Sweep, SweepPriority, SweepStatus
from experiments.sweeps.form import NewSweep
from workers.record.statuses import Status

STARTS = Role.RESEARCHER
RETRIED = {"failed": Status.FAILED, "stopped": Status.CANCELLED}
"""Word for what may be retried -> the status of its runs."""
_GOES_ON = frozenset({SweepStatus.RUNNING, SweepStatus.PAUSED, SweepStatus.OUT_OF_BUDGET})
"""Statuses with work left."""


def start(actor: Actor, form: NewSweep) -> Sweep:
    """Start the sweep of a form; a worker creates its runs. Raises InvalidFields."""
    actor.require(STARTS)
    if not form.is_valid():
        wrong = {name: [str(each) for each in found] for name, found in form.errors.items()}
        raise InvalidFields("Nothing was started: some of it needs another look.", wrong)
    return begin(actor, form.draft())


@transaction.atomic
def begin(actor: Actor, sweep: Sweep) -> Sweep:
    """Save a drafted sweep, and have a worker create its runs."""
    add_sweep(actor, sweep)
    _work_again(actor, sweep)
    return sweep


@transaction.atomic
def add_sweep(actor: Actor, sweep: Sweep) -> None:
    """Save a drafted sweep, with its queue. The caller creates its runs."""
    sweep.owner = actor.person
    sweep.save()
    RunQueue.objects.create(
        owner=actor.person, sweep=sweep, weight=sweep.priority, enabled=sweep.status == SweepStatus.RUNNING
    )
    audit.record(actor, Verb.SWEEP_STARTED, sweep, runs=sweep.planned)


def pause(actor: Actor, pk: int) -> bool:
    """Start no further round. False if it is paused. Raises StateConflict."""
    with _lock(actor, pk) as sweep:
        if sweep.status == SweepStatus.PAUSED:
            return False
        if sweep.status != SweepStatus.RUNNING:
            raise StateConflict(f"This sweep is {sweep.get_status_display().lower()}: there is nothing to pause.")
        set_status(sweep, SweepStatus.PAUSED, f"Paused by {actor.name}.")
        audit.record(actor, Verb.SWEEP_PAUSED, sweep)
    return True


def resume(actor: Actor, pk: int, budget: Mapping[str, float | None] | None = None) -> bool:
    """Continue after a pause or a used-up budget. `budget`: column of a limit -> its new value, None for no limit;
    these are totals, so one that was reached has to be raised. False if it is running.

    Raises InvalidInput, StateConflict.
    """
    with _lock(actor, pk) as sweep:
        if sweep.status not in _GOES_ON:
            raise StateConflict(
                f"This sweep is {sweep.get_status_display().lower()}: retry what failed or was stopped."
            )
        if budget:
            _set_budget(sweep, budget)
        # With the new budget, which may suffice
        if reached := exceeded_budget_message(sweep):
            raise StateConflict(f"{reached} Raise that budget to go on.")
        was_running = sweep.status == SweepStatus.RUNNING
        if was_running and not budget:
            return False
        set_status(sweep, SweepStatus.RUNNING)
        audit.record(actor, Verb.SWEEP_RESUMED, sweep, **(budget or {}))
        _work_again(actor, sweep)
    # A running sweep may get another budget by this, but is not resumed.
    return not was_running


def stop(actor: Actor, pk: int) -> bool:
    """End it: a worker stops unfinished runs, conclusions stay. False if it has ended."""
    with _lock(actor, pk) as sweep:
        if sweep.status in (SweepStatus.STOPPED, SweepStatus.DONE):
            return False
        end(actor, sweep)
    return True


def end(actor: Actor, sweep: Sweep) -> None:
    """Stop a sweep that the caller may stop: a worker ends its runs."""
    set_status(sweep, SweepStatus.STOPPED, f"Stopped by {actor.name}.")
    audit.record(actor, Verb.SWEEP_STOPPED, sweep)
    _work_again(actor, sweep)


def retry(actor: Actor, pk: int, what: str = "failed") -> int:
    """Continue failed, or stopped, runs where they were, and no others; return their number.

    Raises InvalidInput, StateConflict.
    """
    if what not in RETRIED:
        raise InvalidInput(f"“{what[:40]}” cannot be tried again: write one of {', '.join(RETRIED)}.", "what")
    with _lock(actor, pk) as sweep:
        count = sweep.runs.filter(status=RETRIED[what]).count()
        if not count:
            raise StateConflict(f"No run of this sweep has {what}." if what == "failed" else "No run was stopped.")
        if reached := exceeded_budget_message(sweep):
            raise StateConflict(f"{reached} Raise that budget first.")
        set_status(sweep, SweepStatus.RUNNING)
        # Runs end by the clock of the machine that executed them, which may be ahead of this one
        latest = sweep.runs.aggregate(Max("ended"))["ended__max"]
        asked = max(filter(None, (timezone.now(), latest)))
        Sweep.objects.filter(pk=sweep.pk).update(retrying=RETRIED[what], retry_asked=asked)
        audit.record(actor, Verb.SWEEP_RETRIED, sweep, what=what, runs=count)
        _work_again(actor, sweep)
    return count


def change(
    actor: Actor, pk: int, priority: SweepPriority | None = None, budget: Mapping[str, float | None] | None = None
) -> Sweep:
    """Change priority or budget, running or not. A budget that is already used up ends it; a raised one does not resume
    it."""
    with _lock(actor, pk) as sweep:
        if priority is not None:
            sweep.priority = priority
            sweep.save(update_fields=["priority"])
            # Workers read the weight of the queue, not the row of the sweep.
            RunQueue.objects.filter(sweep=sweep).update(weight=priority)
        if budget:
            _set_budget(sweep, budget)
            if sweep.status == SweepStatus.RUNNING and (reached := exceeded_budget_message(sweep)):
                set_status(sweep, SweepStatus.OUT_OF_BUDGET, reached)
        audit.record(actor, Verb.SWEEP_CHANGED, sweep, priority=sweep.get_priority_display(), **(budget or {}))
    return sweep


@contextmanager
def _lock(actor: Actor, pk: int) -> Iterator[Sweep]:
    """Lock the sweep until the step is done: only its creator's, or any for admins."""
    actor.require(STARTS)
    with transaction.atomic():
        sweep = Sweep.objects.select_for_update(of=("self",)).get(pk=pk)
        actor.require_own("started this sweep", sweep.owner_id)
        if sweep.evaluation_id is not None:
            raise StateConflict(
                f"This sweep asks for evaluation {sweep.evaluation_id}: stop the evaluation, or go on with it there."
            )
        yield sweep


def set_status(sweep: Sweep, status: SweepStatus, reason: str = "") -> None:
    """Set the status of a sweep; its queue is open while it runs."""
    sweep.status, sweep.reason = status, reason
    # A sweep that runs again has not ended.
    sweep.ended = timezone.now() if status in (SweepStatus.STOPPED, SweepStatus.DONE) else None
    sweep.save(update_fields=["status", "reason", "ended"])
    RunQueue.objects.filter(sweep=sweep).update(enabled=status == SweepStatus.RUNNING)
    if status in (SweepStatus.STOPPED, SweepStatus.OUT_OF_BUDGET):
        outbox.announce_sweep(sweep, status)
    if status == SweepStatus.RUNNING:
        # After the commit: workers that look earlier find the queue closed.
        transaction.on_commit(queue.wake_workers)


def _set_budget(sweep: Sweep, budget: Mapping[str, float | None]) -> None:
    for column, value in budget.items():
        if column not in BUDGETS:
            raise InvalidInput(f"There is no budget “{column[:40]}”. Choose of: {', '.join(BUDGETS)}.")
        if value is not None and not (math.isfinite(value) and value > 0):
            raise InvalidInput(f"A budget of {value:g} lets nothing run: write more, or none.", column)
        if column == "token_limit" and value is not None and value > MAX_TOKENS:
            raise InvalidInput(
                f"A budget of {value:g} tokens is more than {MAX_TOKENS:g}: write less, or none.", column
            )
        setattr(sweep, column, int(value) if column == "token_limit" and value is not None else value)
    sweep.save(update_fields=list(budget))


def _work_again(actor: Actor, sweep: Sweep) -> None:
    """Have a worker create missing runs, stop those to stop, retry those to retry."""
    # A job for each request: the one before may still be at work, and each step can be repeated.
    job = Job.objects.create(kind=JobKind.SWEEP, subject=sweep.name[:500], asked_by=actor.person)
    sweep.job = job
    sweep.save(update_fields=["job"])
    queue.ask_for_work(job.pk)
