"""Lists of evaluations with progress and cost, and of their items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, Count, F, FloatField, OuterRef, Q, QuerySet, Subquery, Sum, Value, When
from django.db.models.functions import Coalesce

from experiments.api.fields import Words
from experiments.core.compatibility import PERSON
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import list_written_units, visible_to
from experiments.display.label_checks import fetch_checks
from experiments.display.narrowing import (
    Filter,
    Narrowed,
    choice_filter,
    equal,
    index_filters,
    narrow_down,
)
from experiments.evaluations.people import IS_WAITING
from experiments.label_checks.lists import place_of
from experiments.models import Evaluation, EvaluationItem, ItemStatus, JobStatus, Judge
from experiments.pairwise.sources import AGENT
from workers import registry
from workers.record.evaluation_kinds import EvaluationKind
from workers.record.statuses import SUSPENDED

OPEN_ITEMS = (ItemStatus.PLANNED, ItemStatus.RUNNING)
IS_UNSCORED = Q(status=ItemStatus.PLANNED, source=AGENT, label="")
"""Items whose runs' seconds are not counted among those of the evaluation yet."""
FILTERS = index_filters(
    choice_filter("kind", "Kind", EvaluationKind, EvaluationKind.choices()),
)
"""By name in the address, for the page and the API."""
ITEM_FILTERS = index_filters(
    Filter("source", "Source", equal("source"), Words),
    Filter("group", "Group", equal("group"), Words),
    choice_filter("status", "Status", ItemStatus, ItemStatus.choices),
)
"""Of the items of one evaluation. The page offers what its items have."""
ORDERS = ("worst", "position")


def evaluations_from(params: Mapping[str, str]) -> Narrowed:
    """Return the evaluations that an address selects, the newest first; see `with_progress`."""
    # Named: Django drops a model's default order in a query that groups rows
    rows = with_progress(Evaluation.objects.all()).order_by("-created", "-pk")
    return narrow_down(rows, params, FILTERS)


def with_progress(rows: QuerySet[Evaluation]) -> QuerySet[Any]:
    """Annotate rows with numbers of items (`all_items`, `ended_items`, `done_items`, `failed_items`, `lacking_items`,
    `open_items`; `suspended_items` failed because their run is paused or blocked; `waiting_items` are open and wait for
    people), `work` (seconds, with current runs) and `cost` (US dollars of runs, checks and judges, if prices are
    known)."""

    def count(*statuses: str) -> Count:
        return Count("items", filter=Q(items__status__in=statuses))

    # Subqueries: joining several relations would count rows repeatedly
    items = EvaluationItem.objects.filter(evaluation=OuterRef("pk")).order_by().values("evaluation")
    runs = items.annotate(sum=Sum("run__cost")).values("sum")
    checks = items.annotate(sum=Sum("label_check__cost")).values("sum")
    under_way = items.filter(IS_UNSCORED).annotate(sum=Sum("run__seconds"))
    # Trials without people belong to the evaluation; those with people are paid on their own.
    own = Judge.objects.filter(trial__evaluation=OuterRef("pk"), trial__judges_wanted=0).order_by()
    judges = own.values("trial__evaluation").annotate(sum=Sum("cost")).values("sum")
    waiting = EvaluationItem.objects.filter(IS_WAITING, evaluation=OuterRef("pk")).order_by().values("evaluation")
    return rows.select_related("owner", "job").annotate(
        all_items=Count("items"),
        done_items=count(ItemStatus.DONE),
        failed_items=count(ItemStatus.FAILED),
        lacking_items=count(ItemStatus.LACKING),
        open_items=count(*OPEN_ITEMS),
        ended_items=F("all_items") - F("open_items"),
        suspended_items=Count("items", filter=Q(items__status=ItemStatus.FAILED, items__run__status__in=SUSPENDED)),
        cost=Coalesce(Subquery(runs), 0.0, output_field=FloatField())
        + Coalesce(Subquery(checks), 0.0, output_field=FloatField())
        + Coalesce(Subquery(judges), 0.0, output_field=FloatField()),
        work=F("seconds") + Coalesce(Subquery(under_way.values("sum")), 0.0, output_field=FloatField()),
        waiting_items=Coalesce(Subquery(waiting.annotate(count=Count("pk")).values("count")), 0),
    )


@dataclass(frozen=True)
class EvaluationState:
    """The state of an evaluation: `key` for the colour, in words, and whether anything is left to do."""

    key: str
    words: str
    moving: bool = False
    left: bool = False


def state_of(row: Any) -> EvaluationState:
    """Return the state of a row of `with_progress`. It is unfinished while items are left, whatever its job says."""
    job, left = row.job, not row.planned or row.open_items + row.suspended_items > 0
    # 1. The job moves.
    if job is not None and job.is_moving:
        if job.is_stopping:
            return EvaluationState("stopping", "Stopping…", moving=True, left=left)
        running = job.status == JobStatus.RUNNING
        key, words = ("running", "Running") if running else ("queued", "Queued")
        return EvaluationState(key, words, moving=True, left=left)
    if job is not None and job.status == JobStatus.FAILED:
        return EvaluationState("failed", "Failed", left=left)
    # 2. It rests, with items left or not.
    if left and row.open_items == row.waiting_items > 0:
        return EvaluationState("waiting", "Waits for people", left=True)
    if left:
        return EvaluationState("paused", "Unfinished", left=True)
    return EvaluationState("concluded", "Done")


# --- items ---


def list_items(evaluation: Evaluation, params: Mapping[str, str]) -> QuerySet[EvaluationItem]:
    """Return the items that an address selects by source, group and status, the worst first unless it says
    `position`."""
    rows = visible_to(evaluation.items.select_related("unit__layer__model", "run")).prefetch_related(fetch_checks())
    rows = narrow_down(rows, params, ITEM_FILTERS).rows
    if params.get("group", "").strip():
        # The group of a label that a person still writes may give the answer away
        rows = rows.exclude(IS_WAITING)
    if params.get("order") == "position":
        return rows.order_by("position")
    # Failed and missing items first, open ones last
    rank = Case(
        When(status__in=[ItemStatus.FAILED, ItemStatus.LACKING], then=Value(0)),
        When(status=ItemStatus.DONE, then=Value(1)),
        default=Value(2),
    )
    return rows.order_by(rank, *map(_order_by, evaluation.row_of_kind.worst))


def _order_by(name: str) -> Any:
    column = F(name.removeprefix("-"))
    # Unknown values come last in both directions; databases disagree about their place.
    return column.desc(nulls_last=True) if name.startswith("-") else column.asc(nulls_last=True)


def count_by_status(evaluation: Evaluation) -> list[tuple[str, str, int]]:
    """Return (status, its name, number of items) of each status that occurs."""
    found = dict(evaluation.items.order_by().values_list("status").annotate(Count("pk")))
    return [(value, words, found[value]) for value, words in ItemStatus.choices if found.get(value)]


def list_choices(evaluation: Evaluation, column: str) -> list[str]:
    """Return the values of a column, in the order of execution."""
    values = evaluation.items.order_by("position").values_list(column, flat=True)
    return [each for each in dict.fromkeys(values) if each]


def name_item(item: EvaluationItem, names: SystemNameMasker) -> str:
    """Return the name of its unit for this viewer."""
    place = place_of(item)
    if place and names.masks_unit(*place):
        return registry.blind_name(registry.BLINDED_KIND, *place) or HIDDEN_UNIT
    return item.unit_name


HIDDEN_UNIT = "a unit that you are to review"


def list_hidden(evaluation: Evaluation, names: SystemNameMasker) -> set[int]:
    """Return keys of items to hide: the viewer still has to judge their system blind, or people are labelling their
    unit."""
    written = evaluation.items.filter(unit__in=list_written_units())
    # Hidden from all, also from admins, until the people have finished
    unread = set(written.order_by().values_list("pk", flat=True))
    if not names.hidden:
        return unread
    rows = evaluation.items.filter(unit__isnull=False).select_related("unit__layer__model")
    return unread | {row.pk for row in rows if (place := place_of(row)) and names.masks_unit(*place)}


def count_unread(evaluation: Evaluation) -> int:
    """Return the number of items that are not listed while people label their units."""
    return evaluation.items.count() - visible_to(evaluation.items.all()).count()


def is_being_written(item: EvaluationItem) -> bool:
    """True if a person still writes its label. Its group is hidden then, because it may give the answer away."""
    return item.source == PERSON and item.run is not None and not item.run.has_ended
