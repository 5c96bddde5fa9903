"""Which queues a list shows, and in which order, read from its address; and what they hold, as columns show it. Called
by the page Review, by exports and by the API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Avg, Count, Exists, F, OuterRef, Q, QuerySet

from experiments.core import blindness
from experiments.core.system_names import Names
from experiments.core.visibility import visible_to
from experiments.display.narrowing import (
    Condition,
    ListFilter,
    Narrowed,
    contain_words,
    narrow_down,
    offer_each,
    require_known,
    sort_rows,
)
from experiments.display.run_pictures import RunPicture, find_pictures
from experiments.models import Outcome, ReviewItem, ReviewQueue, Run
from experiments.reviews.lists import run_fields, with_items

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
"""Name in the address -> what is sorted by."""
FILTERS = frozenset({"q", "status", "model", "layer", "backbone", "owner"})
PICTURES = 3
"""Pictures of a queue: those of its first runs."""


def queues_from(params: Mapping[str, str], user: User) -> Narrowed:
    """The queues that an address chooses, each with `total` and `complete`. One is not found by a system that is hidden
    from this person."""
    names = Names(user)
    conditions: Mapping[str, Condition] = {
        "q": contain_words("name"),
        "status": lambda text: _by_status(text, user),
        "model": lambda text: _holds(Q(run__model=text) & ~names.are_hidden("run__")),
        "layer": lambda text: _holds(Q(run__layer=text) & ~names.are_hidden("run__")),
        "backbone": lambda text: _holds(Q(run__backbone=text)),
        "owner": lambda text: Q(owner__username=text),
    }
    found = narrow_down(with_items(ReviewQueue.objects.all()), params, conditions)
    return sort_rows(found, params.get("sort", ""), SORTS, NEWEST)


def _holds(condition: Q) -> Q:
    return Q(Exists(ReviewItem.objects.filter(condition, queue=OuterRef("pk")).order_by()))


def _by_status(text: str, user: User) -> Q:
    status = require_known("status", text, STATUSES)
    if status == WAITING:
        return Q(pk__in=blindness.waiting(user).order_by().values("queue"))
    return Q(closed__isnull=status == OPEN)


def list_filters(found: Narrowed, user: User) -> list[ListFilter]:
    """The fields that narrow the list down, with what there is to choose."""
    owners = ReviewQueue.objects.order_by().values_list("owner__username", flat=True).distinct()
    return [
        *run_fields(Run.objects.filter(review_items__isnull=False), found, Names(user)),
        ListFilter("owner", "Created by", offer_each(owners), "Anybody"),
    ]


# --- what they hold ---


@dataclass
class QueueContents:
    """Of the runs of a queue: pictures of the first, which systems and agents they are of, the mean r of their checks
    with how many there are, and how many have which verdict, as far as who asks may see it."""

    pictures: list[RunPicture] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)
    score: float | None = None
    checked: int = 0
    verdicts: list[tuple[str, str, int]] = field(default_factory=list)


def read_contents(queues: Iterable[ReviewQueue], user: User) -> Mapping[int, QueueContents]:
    """By key of the queue; a constant number of queries."""
    found = {queue.pk: QueueContents() for queue in queues}
    items = visible_to(ReviewItem.objects.filter(queue__in=list(found))).order_by("queue")
    first = list(items.filter(position__lte=PICTURES).order_by("queue", "position").values_list("queue", "run"))
    pictures = find_pictures(run for _, run in first)
    for queue, run in first:
        if run in pictures:
            found[queue].pictures.append(pictures[run])
    told = items.exclude(Names(user).are_hidden("run__"))
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
    """Queue, verdict, how many of its runs have it; without the runs of which this person may not know theirs."""
    hidden = Run.objects.filter(blindness.has_hidden_verdict(user)).order_by().values("pk")
    judged = items.exclude(run__verdict="").exclude(run__in=hidden)
    return judged.order_by("queue", "run__verdict").values_list("queue", "run__verdict").annotate(Count("pk"))
