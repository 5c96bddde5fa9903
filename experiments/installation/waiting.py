"""Who waits for what, since when: the queue of runs as it stands, one line for each person or sweep.

One query over the active runs, grouped, however many there are; that of `claims` decides who comes next.
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
from experiments.core.system_names import Names
from experiments.models import Flow, Run, SweepStatus
from workers import registry
from workers.record.statuses import Status

MAX_LINES = 50
"""Lines that a page shows; what waits beyond them is counted."""
MAX_OUTAGES = 5
MAX_MODELS = 3
"""Models that a line names."""
SYNTHETIC = "synthetic neurons"
"""What stands for models whose units' names tell what they respond to: nobody reads here which they are."""
_ACTIVE = (Status.QUEUED.value, Status.RUNNING.value)
_NOBODY = 0
"""Key of no flow: of runs that are in none."""


@dataclass
class WaitingLine:
    """Active runs of one flow: `queued` have not begun, `under_way` have, and of these `held` are played right now."""

    flow: Flow
    queued: int = 0
    under_way: int = 0
    held: int = 0
    since: datetime | None = None
    """When the run that has waited longest was asked, or given back after a round, of those that may go on."""
    models: dict[str, int] = field(default_factory=dict)
    """Model -> active runs that need it."""
    title: str = ""
    share: float | None = None
    """Its part, 0 to 1, of the work of people or of sweeps; None while it is closed."""

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
        """Seconds since `since`."""
        return None if self.since is None else max(0.0, (timezone.now() - self.since).total_seconds())

    @property
    def most_wanted(self) -> Sequence[tuple[str, int]]:
        """The models that most of its runs need."""
        return sorted(self.models.items(), key=lambda each: (-each[1], each[0]))[:MAX_MODELS]

    @property
    def other_models(self) -> int:
        return max(0, len(self.models) - MAX_MODELS)

    @property
    def closed(self) -> str:
        """Why none of its runs is begun; "" where they are."""
        if self.flow.open:
            return ""
        if self.flow.sweep is None or self.flow.sweep.status == SweepStatus.RUNNING:
            return "In a terminal"  # whoever asked plays them
        return self.flow.sweep.get_status_display()

    @property
    def reason(self) -> str:
        """The same at length."""
        return self.flow.sweep.reason if self.flow.sweep and not self.flow.open else ""


@dataclass(frozen=True)
class Waiting:
    """Everything that workers have to do for runs: `lines` as they have their turn, and how many runs are in no flow,
    since whoever asked plays them in a terminal."""

    lines: Sequence[WaitingLine]
    in_terminals: int
    outages: Sequence[tuple[str, int]] = ()
    """For the end of what runs wait, and how many do: a disk that is full, a store that is away."""

    @property
    def queued(self) -> int:
        return sum(each.queued for each in self.lines)

    @property
    def under_way(self) -> int:
        return sum(each.under_way for each in self.lines)

    @property
    def waited(self) -> float | None:
        """Seconds of the longest wait where runs may begin."""
        return max((each.waited for each in self.lines if each.waited is not None and not each.closed), default=None)

    @property
    def shown(self) -> Sequence[WaitingLine]:
        return self.lines[:MAX_LINES]

    @property
    def rest(self) -> Sequence[WaitingLine]:
        return self.lines[MAX_LINES:]


def read_waiting(names: Names) -> Waiting:
    """The queue, as somebody who reads these names may see it."""
    rows = list(_count_active())
    flows = Flow.objects.filter(pk__in={row["of"] for row in rows}).select_related("owner", "sweep")
    lines = {flow.pk: WaitingLine(flow) for flow in flows}
    for row in rows:
        if row["of"] in lines:
            lines[row["of"]].add(row)
    found = sorted(lines.values(), key=_order)
    for line in found:
        line.title = _entitle(line, names)
    _share_out(found)
    without_flow = sum(row["count"] for row in rows if row["of"] == _NOBODY)
    held_up = Run.objects.filter(status__in=_ACTIVE).exclude(held_up="").order_by()
    outages = held_up.values_list("held_up").annotate(count=Count("pk")).order_by("-count", "held_up")
    return Waiting(found, without_flow, list(outages[:MAX_OUTAGES]))


def _count_active() -> QuerySet[Any, Any]:
    """Active runs by flow (`of`), status and model (`what`)."""
    now = timezone.now()
    active = Run.objects.filter(status__in=_ACTIVE)
    held = Q(lease_expires__gt=now)
    what = Case(
        When(system_kind=registry.BLINDED_KIND, then=Value(SYNTHETIC)),
        default=F("model"),
        output_field=CharField(),
    )
    # No bare column: to group by one that has an index, SQLite goes through all runs there are
    return (
        active.order_by()
        .values("status", what=what, of=Coalesce("flow", Value(_NOBODY)))
        .annotate(
            count=Count("pk"),
            held=Count("pk", filter=held),
            since=Min("due", filter=Q(due__lte=now) & (Q(lease_expires=None) | ~held)),
        )
    )


def _order(line: WaitingLine) -> tuple[bool, bool, datetime, int]:
    """As they have their turn: people before sweeps, whoever was visited longest ago first, what is closed last."""
    return not line.flow.open, line.flow.sweep_id is not None, line.flow.visited, line.flow.pk


def _entitle(line: WaitingLine, names: Names) -> str:
    """Whose runs they are. The name of a sweep may tell a neuron that the viewer is to judge unseen."""
    sweep = line.flow.sweep
    if sweep is None:
        return person(line.flow.owner)
    return f"Sweep {sweep.pk}" if SYNTHETIC in line.models and names.hidden else sweep.name


def _share_out(lines: Sequence[WaitingLine]) -> None:
    """Say what part of the work each has beside the others of its kind."""
    for of_sweeps in (False, True):
        alike = [each for each in lines if each.flow.open and (each.flow.sweep_id is not None) == of_sweeps]
        whole = sum(each.flow.weight for each in alike)
        for each in alike:
            each.share = each.flow.weight / whole if whole else None
