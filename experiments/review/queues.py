"""Queues: made from the runs that filters choose, how far each is, closed for good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, F, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from experiments import notifications
from experiments.models import Item, Queue, Review, Run
from experiments.models.member import Role
from experiments.models.notification import Kind
from experiments.models.review import State
from experiments.models.run import ENDED
from experiments.people import person
from experiments.review import reservation

MAKES = Role.ADMIN
"""Who makes and closes queues."""
MOST = 10_000
"""Runs of one queue."""
BATCH = 1_000
SHOWN = 5
"""Queues that the Overview names."""


@dataclass(frozen=True)
class Plan:
    """How a queue is to be: `reviewers` may be empty for everybody who may review."""

    name: str
    note: str
    filters: str
    reviewers_per_item: int
    blind: bool
    reviewers: Sequence[User]


@transaction.atomic
def make(owner: User, runs: QuerySet[Run], plan: Plan) -> Queue:
    """A queue of these runs, in their order, as they are now; those who are to review it are told."""
    queue = Queue.objects.create(
        owner=owner,
        name=plan.name,
        note=plan.note,
        filters=plan.filters,
        reviewers_per_item=plan.reviewers_per_item,
        blind=plan.blind,
    )
    queue.reviewers.set(plan.reviewers)
    rows = list(runs.values_list("pk", "last_seq")[:MOST])
    Item.objects.bulk_create(
        (Item(queue=queue, run_id=key, position=place, seen_seq=seq) for place, (key, seq) in enumerate(rows, 1)),
        batch_size=BATCH,
    )
    words = f"{person(owner)} asks you to review {len(rows):,} run{'' if len(rows) == 1 else 's'} in “{queue.name}”."
    for reviewer in plan.reviewers:
        if reviewer.pk != owner.pk:
            notifications.tell(reviewer, Kind.REVIEW, words, queue.get_absolute_url())
    return queue


def reviewable(runs: QuerySet[Run], only_ended: bool) -> QuerySet[Run]:
    """Of these runs those to be queued."""
    return runs.filter(status__in=ENDED) if only_ended else runs


def close(queue: Queue) -> bool:
    """No more reviews. False if somebody else closed it first."""
    return bool(Queue.objects.filter(pk=queue.pk, closed=None).update(closed=timezone.now()))


def with_items(queues: QuerySet[Queue]) -> QuerySet[Any]:
    """Each with the number of its items in `total`, of the complete ones in `complete`."""
    items = Item.objects.filter(queue=OuterRef("pk")).order_by()
    return queues.annotate(total=counted(items, "queue"), complete=counted(items.filter(complete=True), "queue"))


def unfinished(user: Any) -> list[Any]:
    """The newest queues in which this person may review and something is `left`."""
    rows = with_items(reservation.queues_of(user)).annotate(left=F("total") - F("complete"))
    return list(rows.filter(left__gt=0)[:SHOWN])


def with_progress(queues: QuerySet[Queue]) -> list[Any]:
    """Each with its items, and how many reviews are under way at this moment in `writing`."""
    live = Review.objects.filter(state=State.DRAFT, slot__isnull=False, reserved_until__gt=timezone.now()).order_by()
    writing = dict(live.values_list("item__queue").annotate(Count("pk")))
    found = list(with_items(queues))
    for queue in found:
        queue.writing = writing.get(queue.pk, 0)
    return found


def counted(rows: QuerySet[Any], by: str) -> Coalesce:
    counts = rows.values(by).annotate(count=Count("pk")).values("count")
    return Coalesce(Subquery(counts, output_field=IntegerField()), 0)
