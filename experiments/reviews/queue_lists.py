"""Filter and sort queues by a query, and read what their columns show. Used by the Review page, exports and the
API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from django.contrib.auth.models import User
from django.db.models import Avg, Count, Exists, F, OuterRef, Q, QuerySet

from experiments.api.fields import Words
from experiments.core import blindness
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display.narrowing import (
    Condition,
    Filter,
    Narrowed,
    contain_words,
    equal,
    index_filters,
    list_conditions,
    narrow_down,
    offer_values,
    require_known,
    sort_rows,
)
from experiments.display.run_pictures import RunPicture, find_pictures
from experiments.models import Outcome, ReviewItem, ReviewQueue, Run
from experiments.reviews.lists import filters_of, with_items

WAITING, OPEN, CLOSED = "waiting", "open", "closed"
STATUSES = {WAITING: "Waits for you", OPEN: "Open", CLOSED: "Closed"}
NEWEST = "-created"
SORTS: Mapping[str, Any] = {
    "created": F("created"),
    "name": F("name"),
    "complete": F("complete"),
    "total": F("total"),
    "owner": F("owner__username"),
    "closed": F("closed"),
}
"""Name in the query -> expression to sort by."""
FILTERS = index_filters(
    Filter("q", "Words", contain_words("name"), Words, "words of its name", in_fields=False),
    Filter(
        "status",
        "Status",
        None,
        Literal["waiting", "open", "closed"],
        "`waiting`: something is there for you",
        choices=list(STATUSES.items()),
        in_fields=False,
    ),
    *filters_of(lambda _: Run.objects.filter(review_items__isnull=False)),
    Filter(
        "owner",
        "Created by",
        equal("owner__username"),
        Words,
        choices=offer_values(lambda _: ReviewQueue.objects.all(), "owner__username"),
        blank="Anybody",
    ),
)
"""By name in the address. Systems and agents are those of the runs that a queue holds."""
PICTURES = 3
"""Pictures of a queue: those of its first runs."""


def queues_from(params: Mapping[str, str], user: User) -> Narrowed:
    """Return the queues that a query selects, each with `total` and `complete`.

    A filter by system does not match systems that are hidden from this person.
    """
    names = SystemNameMasker(user)
    conditions = list_conditions(FILTERS)
    # Agents are never hidden: a filter that matches nothing.
    hidden = {"model": names.are_hidden(), "layer": names.are_hidden(), "backbone": Q(pk__in=[])}
    instead: dict[str, Condition] = {name: partial(_holds, conditions[name], those) for name, those in hidden.items()}
    instead["status"] = partial(_by_status, user=user)
    found = narrow_down(with_items(ReviewQueue.objects.all()), params, FILTERS, instead)
    return sort_rows(found, params.get("sort", ""), SORTS, NEWEST)


def _holds(condition: Condition, hidden: Q, text: str) -> Q:
    runs = Run.objects.filter(condition(text)).exclude(hidden).order_by().values("pk")
    return Q(Exists(ReviewItem.objects.filter(run__in=runs, queue=OuterRef("pk")).order_by()))


def _by_status(text: str, user: User) -> Q:
    status = require_known("status", text, STATUSES)
    if status == WAITING:
        return Q(pk__in=blindness.waiting(user).order_by().values("queue"))
    return Q(closed__isnull=status == OPEN)


# --- what they hold ---


@dataclass
class QueueContents:
    """What columns show of a queue's runs, as far as the viewer may see it.

    Pictures of the first runs, their systems and agents, the mean r of `checked` label checks, and (verdict, name,
    count).
    """

    pictures: list[RunPicture] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)
    score: float | None = None
    checked: int = 0
    verdicts: list[tuple[str, str, int]] = field(default_factory=list)


def read_contents(queues: Iterable[ReviewQueue], user: User) -> Mapping[int, QueueContents]:
    """Return the contents by key of the queue. The number of queries is constant."""
    found = {queue.pk: QueueContents() for queue in queues}
    items = visible_to(ReviewItem.objects.filter(queue__in=list(found))).order_by("queue")
    first = list(items.filter(position__lte=PICTURES).order_by("queue", "position").values_list("queue", "run"))
    pictures = find_pictures(run for _, run in first)
    for queue, run in first:
        if run in pictures:
            found[queue].pictures.append(pictures[run])
    told = items.exclude(SystemNameMasker(user).are_hidden("run__"))
    for queue, model, layer in told.values_list("queue", "run__model", "run__layer").distinct():
        found[queue].places.append(f"{model} / {layer}")
    for queue, backbone, model in items.values_list("queue", "run__backbone", "run__backbone_model").distinct():
        found[queue].agents.append(model or backbone)
    checks = items.values_list("queue").annotate(
        r=Avg("run__label_check__pearson"), n=Count("run__label_check__pearson")
    )
    for queue, score, checked in checks:
        found[queue].score, found[queue].checked = score, checked
    for queue, verdict, count in _count_verdicts(items, user):
        found[queue].verdicts.append((verdict, str(Outcome(verdict).label), count))
    return found


def _count_verdicts(items: QuerySet[ReviewItem], user: User) -> Iterable[tuple[int, str, int]]:
    """Yield queue, verdict and number of runs, without runs whose verdict this person may not know."""
    hidden = Run.objects.filter(blindness.has_hidden_verdict(user)).order_by().values("pk")
    judged = items.exclude(run__verdict="").exclude(run__in=hidden)
    return judged.order_by("queue", "run__verdict").values_list("queue", "run__verdict").annotate(Count("pk"))
