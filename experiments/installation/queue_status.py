"""The queue of runs: one line for each person or sweep, with what waits and since when.

One grouped query over the active runs. The query of `claims` decides which run comes next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Case, CharField, Count, F, Min, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce
from django.utils import timezone

from experiments.core.display_name import person
from experiments.core.system_names import SystemNameMasker
from experiments.models import Run, RunQueue, SweepStatus
from workers import registry
from workers.record.statuses import Status

MAX_LINES = 50
"""Maximum number of lines on a page. The rest is counted."""
MAX_OUTAGES = 5
MAX_MODELS = 3
"""Models that a line names."""
SYNTHETIC = "synthetic neurons"
"""Replaces models whose units' names reveal what they respond to."""
_ACTIVE = (Status.QUEUED.value, Status.RUNNING.value)
_IN_NO_QUEUE = 0
"""Key for runs that are in no queue."""


@dataclass
class WaitingLine:
    """Active runs of one queue: `queued` have not begun, `under_way` have; a worker executes a round of `held` of
    these now."""

    run_queue: RunQueue
    queued: int = 0
    under_way: int = 0
    held: int = 0
    since: datetime | None = None
    """When the longest-waiting run was asked, or returned to the queue after a round, among runs that are due."""
    models: dict[str, int] = field(default_factory=dict)
    """Model -> active runs that need it."""
    title: str = ""
    share: float | None = None
    """Its share, 0 to 1, of the work for people or for sweeps; None while it is closed."""

    def add(self, row: Mapping[str, Any]) -> None:
        if row["status"] == Status.QUEUED:
            self.queued += row["count"]
        else:
            self.under_way += row["count"]
            self.held += row["held"]
        self.models[row["what"]] = self.models.get(row["what"], 0) + row["count"]
        self.since = min(filter(None, (self.since, row["since"])), default=None)

    @property
    def waited(self) -> float | None:
        """Return the seconds since `since`."""
        return None if self.since is None else max(0.0, (timezone.now() - self.since).total_seconds())

    @property
    def most_wanted(self) -> Sequence[tuple[str, int]]:
        """Return the models that most of its runs need."""
        return sorted(self.models.items(), key=lambda each: (-each[1], each[0]))[:MAX_MODELS]

    @property
    def other_models(self) -> int:
        return max(0, len(self.models) - MAX_MODELS)

    @property
    def closed(self) -> str:
        """Explain in short why workers start none of its runs; "" if they do."""
        if self.run_queue.enabled:
            return ""
        if self.run_queue.sweep is None or self.run_queue.sweep.status == SweepStatus.RUNNING:
            # A command in a terminal executes these runs, so workers do not claim them
            return "In a terminal"
        return self.run_queue.sweep.get_status_display()

    @property
    def reason(self) -> str:
        """Explain in full why workers start none of its runs."""
        return self.run_queue.sweep.reason if self.run_queue.sweep and not self.run_queue.enabled else ""


@dataclass(frozen=True)
class Waiting:
    """All runs that wait for workers. `lines` are in order of their turn.

    `in_terminals` counts runs that are in no queue, because a command in a terminal executes them.
    """

    lines: Sequence[WaitingLine]
    in_terminals: int
    outages: Sequence[tuple[str, int]] = ()
    """Outages for whose end runs wait, with the number of runs: a full disk, or an unreachable store."""

    @property
    def queued(self) -> int:
        return sum(each.queued for each in self.lines)

    @property
    def under_way(self) -> int:
        return sum(each.under_way for each in self.lines)

    @property
    def waited(self) -> float | None:
        """Return the seconds of the longest wait among open lines."""
        return max((each.waited for each in self.lines if each.waited is not None and not each.closed), default=None)

    @property
    def shown(self) -> Sequence[WaitingLine]:
        return self.lines[:MAX_LINES]

    @property
    def rest(self) -> Sequence[WaitingLine]:
        return self.lines[MAX_LINES:]


def read_waiting(names: SystemNameMasker) -> Waiting:
    """Return the queue as a viewer with these names may see it."""
    rows = list(_count_active())
    run_queues = RunQueue.objects.filter(pk__in={row["of"] for row in rows}).select_related("owner", "sweep")
    lines = {run_queue.pk: WaitingLine(run_queue) for run_queue in run_queues}
    for row in rows:
        if row["of"] in lines:
            lines[row["of"]].add(row)
    found = sorted(lines.values(), key=_order)
    for line in found:
        line.title = _entitle(line, names)
    _share_out(found)
    without_queue = sum(row["count"] for row in rows if row["of"] == _IN_NO_QUEUE)
    waiting_reason = Run.objects.filter(status__in=_ACTIVE).exclude(waiting_reason="").order_by()
    outages = (
        waiting_reason.values_list("waiting_reason").annotate(count=Count("pk")).order_by("-count", "waiting_reason")
    )
    return Waiting(found, without_queue, list(outages[:MAX_OUTAGES]))


def _count_active() -> QuerySet[Any, Any]:
    """Count active runs by queue (`of`), status and model (`what`)."""
    now = timezone.now()
    active = Run.objects.filter(status__in=_ACTIVE)
    held = Q(lease_expires__gt=now)
    what = Case(
        When(system_kind=registry.BLINDED_KIND, then=Value(SYNTHETIC)),
        default=F("model"),
        output_field=CharField(),
    )
    # SQLite would scan all runs to group by an indexed column, so no bare column is selected
    return (
        active.order_by()
        .values("status", what=what, of=Coalesce("run_queue", Value(_IN_NO_QUEUE)))
        .annotate(
            count=Count("pk"),
            held=Count("pk", filter=held),
            since=Min("due", filter=Q(due__lte=now) & (Q(lease_expires=None) | ~held)),
        )
    )


def _order(line: WaitingLine) -> tuple[bool, bool, datetime, int]:
    """Return the sort key of the order of turns: open lines first, people before sweeps, the least recently served."""
    return (
        not line.run_queue.enabled,
        line.run_queue.sweep_id is not None,
        line.run_queue.last_served,
        line.run_queue.pk,
    )


def _entitle(line: WaitingLine, names: SystemNameMasker) -> str:
    """Return the title of a line. The name of a sweep may reveal a neuron that the viewer must judge blind."""
    sweep = line.run_queue.sweep
    if sweep is None:
        return person(line.run_queue.owner)
    return f"Sweep {sweep.pk}" if SYNTHETIC in line.models and names.hidden else sweep.name


def _share_out(lines: Sequence[WaitingLine]) -> None:
    """Set the share that each line has among the open lines of its kind."""
    for of_sweeps in (False, True):
        alike = [
            each for each in lines if each.run_queue.enabled and (each.run_queue.sweep_id is not None) == of_sweeps
        ]
        whole = sum(each.run_queue.weight for each in alike)
        for each in alike:
            each.share = each.run_queue.weight / whole if whole else None
