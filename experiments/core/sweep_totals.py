"""Update what a sweep's runs used with each of their events, and end the sweep when its budget is reached.

Called only by `transcript`, in the transaction of the event. A reached budget closes the sweep's queue: current
rounds finish, and no new one starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_

from django.db.models import F, Q
from django.utils import timezone

from experiments.core import notifications, outbox
from experiments.models import NotificationKind, Run, RunQueue, Sweep, SweepStatus
from workers.record.statuses import ENDED

BUDGETS: Mapping[str, tuple[str, str]] = {
    "cost_limit": ("cost", "${:,.2f}"),
    "token_limit": ("tokens", "{:,} tokens"),
    "seconds_limit": ("seconds", "{:,.0f} s of work"),
}
"""Column of each limit -> the column that it limits, and the format of its figures."""
MAX_TOKENS = 10**15
"""Maximum token budget."""
NAME_CHARS = 60
"""Maximum characters of a sweep's name in a notification."""
_OVER = (SweepStatus.DONE, SweepStatus.STOPPED)


@dataclass(frozen=True)
class RunTotals:
    """What a run used: US dollars, tokens, seconds of work."""

    cost: float
    tokens: int
    seconds: float

    @classmethod
    def of(cls, run: Run) -> RunTotals:
        return cls(run.cost, run.tokens, run.seconds)


def update_totals(run: Run, before: RunTotals, *, ends: bool) -> None:
    """Add what an event of the run used beyond `before`; `ends` is true for the run's last event. The run must be
    locked."""
    if run.sweep_id is None:
        return
    now = RunTotals.of(run)
    if now != before:
        # Added by the database: runs of a sweep write at the same time.
        Sweep.objects.filter(pk=run.sweep_id).update(
            cost=F("cost") + (now.cost - before.cost),
            tokens=F("tokens") + (now.tokens - before.tokens),
            seconds=F("seconds") + (now.seconds - before.seconds),
        )
        _close_if_reached(run.sweep_id)
    if ends:
        finish_if_last(run.sweep_id)


def exceeded_budget_message(sweep: Sweep) -> str:
    """Return a sentence about the sweep's budget that is used up; "" if none is."""
    for limit, (column, words) in BUDGETS.items():
        most, taken = getattr(sweep, limit), getattr(sweep, column)
        if most is not None and taken >= most:
            return f"The budget of {words.format(most)} is used up: it took {words.format(taken)}."
    return ""


def _close_if_reached(sweep_id: int) -> None:
    reached = reduce(or_, (Q(**{f"{column}__gte": F(limit)}) for limit, (column, _) in BUDGETS.items()))
    running = Sweep.objects.filter(reached, pk=sweep_id, status=SweepStatus.RUNNING)
    # Of several runs that reach the budget at once, only the one whose update changes the row reports it.
    if not running.update(status=SweepStatus.OUT_OF_BUDGET):
        return
    RunQueue.objects.filter(sweep=sweep_id).update(enabled=False)
    closed = Sweep.objects.get(pk=sweep_id)
    closed.reason = exceeded_budget_message(closed)
    closed.save(update_fields=["reason"])
    _tell_owner(closed, f"stands still. {closed.reason}")
    outbox.announce_sweep(closed, closed.status)


def finish_if_last(sweep_id: int) -> None:
    """Finish the sweep once all of its runs exist and have ended."""
    complete = Sweep.objects.filter(pk=sweep_id, created_runs__gte=F("planned")).exclude(status__in=_OVER)
    sweep = complete.select_related("owner").first()
    if sweep is None or Run.objects.filter(sweep=sweep_id).exclude(status__in=ENDED).exists():
        return
    if complete.update(status=SweepStatus.DONE, reason="", ended=timezone.now()):
        _tell_owner(sweep, "is done.")
        outbox.announce_sweep(sweep, SweepStatus.DONE)


def _tell_owner(sweep: Sweep, words: str) -> None:
    """Notify the owner once for the whole sweep: its runs do not. An evaluation notifies about its own sweeps."""
    if sweep.evaluation_id is not None:
        return
    said = f"Your sweep {sweep.pk}, “{notifications.shorten(sweep.name, NAME_CHARS)}”, {words}"
    notifications.notify_person(sweep.owner, NotificationKind.RUN, said, sweep.get_absolute_url())


def explain_wait(run: Run) -> str:
    """Explain why no worker claims a run that has not ended; "" if one will."""
    if run.waiting_reason and not run.has_ended:
        return run.waiting_reason
    if run.sweep is None or run.has_ended or run.sweep.status == SweepStatus.RUNNING:
        return ""
    return f"It waits with its sweep, which is {run.sweep.get_status_display().lower()}. {run.sweep.reason}".strip()
