"""List sweeps with their progress and findings: units with their labels, failures by reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

from django.db.models import Count, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from experiments.api.fields import RowNumber, Words
from experiments.core.clock import database_now
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display.narrowing import (
    Filter,
    Narrowed,
    choice_filter,
    equal,
    equal_number,
    index_filters,
    narrow_down,
)
from experiments.models import CheckStatus, Label, Run, Sweep, SweepStatus
from experiments.models.stored import StoredScore
from experiments.runs.filter_choices import list_owners
from experiments.units.label_groups import LabelGroup, group_labels
from workers.record.estimates import benjamini_hochberg, is_beyond_chance
from workers.record.statuses import ACTIVE, Status

MAX_REASONS = 20
"""Reasons of failures that are listed."""
REASON_CHARS = 300
FILTERS = index_filters(
    choice_filter("status", "Status", SweepStatus, SweepStatus.choices),
    Filter("owner", "Created by", equal("owner__username"), Words, choices=list_owners),
    Filter(
        "evaluation",
        "Evaluation",
        equal_number("evaluation", "evaluation"),
        RowNumber,
        "number of the evaluation they are of",
        hint="its number",
    ),
)
"""By name in the address, for the page, the API and exports."""


def sweeps_from(params: Mapping[str, str]) -> Narrowed:
    """Return the sweeps that an address selects, the newest first; see `with_progress`."""
    rows = with_progress(Sweep.objects.all()).order_by("-created", "-pk")
    return narrow_down(rows, params, FILTERS)


def with_progress(rows: QuerySet[Sweep]) -> QuerySet[Any]:
    """Add counts of runs by state: `done_runs` concluded or reached a limit, `failed_runs`, `stopped_runs`,
    `active_runs`, `suspended_runs`, `held_runs` of which a worker plays a round, `checked_runs` whose label was
    measured, and `unchecked_runs` whose label is still to be measured."""

    def count(condition: Q) -> Any:
        # A subquery for each count: joined, the rows would be counted several times.
        runs = Run.objects.filter(condition, sweep=OuterRef("pk")).order_by().values("sweep")
        return Coalesce(Subquery(runs.annotate(count=Count("pk")).values("count"), output_field=IntegerField()), 0)

    return rows.select_related("owner", "job").annotate(
        done_runs=count(Q(status__in=(Status.CONCLUDED, Status.LIMIT_REACHED))),
        failed_runs=count(Q(status=Status.FAILED)),
        stopped_runs=count(Q(status=Status.CANCELLED)),
        active_runs=count(Q(status__in=ACTIVE)),
        suspended_runs=count(Q(status__in=(Status.PAUSED, Status.WAITING))),
        held_runs=count(Q(lease_expires__gt=database_now())),
        checked_runs=count(Q(label_check__pearson__isnull=False)),
        unchecked_runs=count(Q(label_check__status__in=(CheckStatus.QUEUED, CheckStatus.RUNNING))),
    )


@dataclass(frozen=True)
class SweepState:
    """The state of a sweep: `key` for colours, in words, and the possible actions."""

    key: str
    words: str
    moves: Sequence[str]
    live: bool


_KEYS = {
    SweepStatus.RUNNING: "running",
    SweepStatus.PAUSED: "paused",
    SweepStatus.OUT_OF_BUDGET: "limit_reached",
    SweepStatus.STOPPED: "cancelled",
    SweepStatus.DONE: "concluded",
}


def state_of(row: Any) -> SweepState:
    """Return the state of a row of `with_progress`. A sweep is live while anything of it changes, such as ending rounds
    or checks."""
    status = SweepStatus(row.status)
    moves = {
        SweepStatus.RUNNING: ["pause", "stop"],
        SweepStatus.PAUSED: ["resume", "stop"],
        SweepStatus.OUT_OF_BUDGET: ["resume", "stop"],
    }.get(status, [])
    if row.failed_runs:
        moves = [*moves, "retry-failed"]
    if row.stopped_runs:
        moves = [*moves, "retry-stopped"]
    if row.evaluation_id is not None:
        moves = []  # its evaluation steers it
    at_work = row.job is not None and row.job.is_moving
    live = status == SweepStatus.RUNNING or at_work or row.held_runs > 0 or row.unchecked_runs > 0
    return SweepState(_KEYS[status], status.label, moves, live)


def count_left(row: Any) -> int:
    """Return the number of unfinished runs of a row of `with_progress`, including those still to be created."""
    created_open: int = row.active_runs + row.suspended_runs
    return created_open + max(0, row.planned - row.created_runs)


def count_statuses(sweep: Sweep) -> list[tuple[str, str, int]]:
    """Return each status that occurs, its words and its number of runs."""
    found = dict(sweep.runs.order_by().values_list("status").annotate(Count("pk")))
    return [(each.value, each.label, found[each.value]) for each in Status if found.get(each.value)]


@dataclass(frozen=True)
class FailureReason:
    """A reason, how many runs failed for it, and the newest of these."""

    reason: str
    count: int
    runs: Sequence[int]


def list_failures(sweep: Sweep, examples: int = 5) -> list[FailureReason]:
    """List why runs failed, the most frequent reason first."""
    rows = sweep.runs.filter(status=Status.FAILED).order_by("-pk").values_list("reason", "pk")
    runs: dict[str, list[int]] = {}
    for reason, pk in rows:
        runs.setdefault(reason[:REASON_CHARS], []).append(pk)
    found = [FailureReason(reason, len(keys), keys[:examples]) for reason, keys in runs.items()]
    return sorted(found, key=lambda each: -each.count)[:MAX_REASONS]


@dataclass(frozen=True)
class SweptRun:
    """A run of a sweep as maps, groups and figures read it. `r` is that of its label's check, `q` the p-value of its
    test adjusted for all of the sweep (Benjamini and Hochberg); `cost` in US dollars."""

    pk: int
    layer: str
    unit: int
    agent: str
    status: Status
    r: float | None
    cost: float
    labels: Sequence[str]
    score: StoredScore = field(default_factory=StoredScore)
    """Of a run on a function that has ended."""
    q: float | None = None

    @property
    def beyond_chance(self) -> bool:
        """True if its label says something of the unit; at most 5 % of such labels are expected not to."""
        return is_beyond_chance(self.r, self.q)


def read_runs(sweep: Sweep, names: SystemNameMasker) -> list[SweptRun]:
    """Return all runs of a sweep, in two queries, without those whose system the viewer is to judge blind."""
    rows = visible_to(sweep.runs.exclude(names.are_hidden())).order_by("pk")
    columns = ("backbone", "backbone_model", "toolset", "status", "label_check__pearson", "cost", "score")
    # The p-value first, so that the other columns unpack in order.
    found = list(rows.values_list("label_check__p_value", "pk", "layer", "unit", *columns))
    # Over all runs of the sweep: of thousands of tests, many would be significant by chance.
    adjusted = benjamini_hochberg([p for p, *_ in found])
    labels: dict[int, list[str]] = {}
    said = Label.objects.filter(run__sweep=sweep).order_by("pk").values_list("run_id", "text")
    for run, text in said:
        labels.setdefault(run or 0, []).append(text)
    return [
        SweptRun(pk, layer, unit, _name_agent(*agent), Status(status), r, cost, labels.get(pk, ()), score, q)
        for (_, pk, layer, unit, *agent, status, r, cost, score), q in zip(found, adjusted, strict=True)
    ]


def _name_agent(backbone: str, model: str, toolset: str) -> str:
    return f"{model or backbone}, {toolset}"


def group_runs(runs: Iterable[SweptRun]) -> list[LabelGroup]:
    """Group the labels of runs by likeness, with keys of runs as members."""
    return group_labels((run.pk, text) for run in runs for text in run.labels)


@dataclass(frozen=True)
class AgentFigures:
    """Figures of one agent of a sweep: runs that ended by themselves, checked labels with the median of their r, US
    dollars per run."""

    agent: str
    done: int
    checked: int
    median: float | None
    cost: float | None


def compare_agents(runs: Iterable[SweptRun]) -> list[AgentFigures]:
    """Return the figures of each agent of a sweep, in the order in which they ask."""
    by_agent: dict[str, list[SweptRun]] = {}
    for run in runs:
        by_agent.setdefault(run.agent, []).append(run)
    found = []
    for agent, some in by_agent.items():
        done = [run for run in some if run.status in (Status.CONCLUDED, Status.LIMIT_REACHED)]
        known = [run.r for run in some if run.r is not None]
        costs = [run.cost for run in done]
        found.append(
            AgentFigures(
                agent, len(done), len(known), median(known) if known else None, fmean(costs) if costs else None
            )
        )
    return found


WORST = (
    Status.FAILED,
    Status.RUNNING,
    Status.WAITING,
    Status.PAUSED,
    Status.QUEUED,
    Status.CANCELLED,
    Status.LIMIT_REACHED,
    Status.CONCLUDED,
)
"""Of several runs of a unit, the status that comes first here is that of the unit."""
