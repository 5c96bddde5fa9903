"""Queues: made from the runs that filters choose, how far each is, closed for good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, F, IntegerField, Max, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from experiments.core import notifications, review_rights
from experiments.core.access import role_of
from experiments.core.display_name import person
from experiments.models import Review, ReviewItem, ReviewQueue, Run
from experiments.models.member import Role
from experiments.models.notification import Kind
from experiments.models.review import State
from experiments.reviews import projection
from workers.record.statuses import ENDED

MOST = 10_000
"""Runs of one queue."""
BATCH = 1_000
SHOWN = 5
"""Queues that the Overview names."""


class Refused(Exception):
    """Raised when a run is not put up for review; the message says why."""


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
def make(owner: User, runs: QuerySet[Run], plan: Plan) -> ReviewQueue:
    """A queue of these runs, in their order, as they are now; those who are to review it are told."""
    queue = ReviewQueue.objects.create(
        owner=owner,
        name=plan.name,
        note=plan.note,
        filters=plan.filters,
        reviewers_per_item=plan.reviewers_per_item,
        blind=plan.blind,
    )
    queue.reviewers.set(plan.reviewers)
    rows = list(runs.values_list("pk", "last_seq")[:MOST])
    ReviewItem.objects.bulk_create(
        (ReviewItem(queue=queue, run_id=key, position=place, seen_seq=seq) for place, (key, seq) in enumerate(rows, 1)),
        batch_size=BATCH,
    )
    words = f"{person(owner)} asks you to review {len(rows):,} run{'' if len(rows) == 1 else 's'} in “{queue.name}”."
    tell_reviewers(queue, owner, words)
    return queue


def reviewable(runs: QuerySet[Run], only_ended: bool) -> QuerySet[Run]:
    """Of these runs those to be queued."""
    return runs.filter(status__in=ENDED) if only_ended else runs


def allowed(runs: QuerySet[Run], user: User) -> QuerySet[Run]:
    """Of these runs those that this person may put up for review: an admin any, others their own."""
    return runs if role_of(user) == Role.ADMIN else runs.filter(owner=user)


def may_close(user: User, queue: ReviewQueue) -> bool:
    """An admin, and who made the queue."""
    return queue.closed is None and (role_of(user) == Role.ADMIN or queue.owner_id == user.pk)


@transaction.atomic
def put_up(user: User, run: Run, queue: int) -> ReviewItem:
    """Add a run that has ended to an open queue, as its last item; the reviewers it names are told. Raises Refused."""
    row = ReviewQueue.objects.select_for_update().filter(pk=queue, closed=None).first()
    if row is None:
        raise Refused("This queue is closed, or there is none of this number. Choose an open one.")
    if not allowed(Run.objects.filter(pk=run.pk), user).exists():
        raise Refused("Put up runs of your own; an admin may put up any.")
    if not run.has_ended:
        raise Refused("This run has not ended: it can be reviewed once it has.")
    if row.items.filter(run=run).exists():
        raise Refused(f"Run {run.pk} is in this queue already.")
    last = row.items.aggregate(Max("position"))["position__max"] or 0
    if last >= MOST:
        raise Refused(f"This queue holds {MOST:,} runs, and takes no more. Choose another.")
    item = ReviewItem.objects.create(queue=row, run=run, position=last + 1, seen_seq=run.last_seq)
    tell_reviewers(row, user, f"{person(user)} has put {notifications.about(run)} up for review in “{row.name}”.")
    return item


def tell_reviewers(queue: ReviewQueue, user: User, words: str) -> None:
    """Those whom the queue names, but for who did it."""
    for reviewer in queue.reviewers.exclude(pk=user.pk):
        notifications.tell(reviewer, Kind.REVIEW, words, queue.get_absolute_url())


@transaction.atomic
def close(queue: ReviewQueue) -> bool:
    """No more reviews, and those that there are count. False if somebody else closed it first."""
    if not ReviewQueue.objects.filter(pk=queue.pk, closed=None).update(closed=timezone.now()):
        return False
    begun = queue.items.filter(complete=False, reviews__state=State.SUBMITTED).distinct()
    projection.project(begun.values_list("run_id", flat=True))
    return True


def with_items(queues: QuerySet[ReviewQueue]) -> QuerySet[Any]:
    """Each with the number of its items in `total`, of the complete ones in `complete`."""
    items = ReviewItem.objects.filter(queue=OuterRef("pk")).order_by()
    return queues.annotate(total=counted(items, "queue"), complete=counted(items.filter(complete=True), "queue"))


def unfinished(user: Any) -> list[Any]:
    """The newest queues in which this person may review and something is `left`."""
    rows = with_items(review_rights.queues_of(user)).annotate(left=F("total") - F("complete"))
    return list(rows.filter(left__gt=0)[:SHOWN])


def with_progress(queues: QuerySet[ReviewQueue]) -> list[Any]:
    """Each with its items, and how many reviews are under way at this moment in `writing`: an item that somebody has
    opened, and said nothing of yet, is not."""
    live = Review.objects.filter(state=State.DRAFT, slot__isnull=False, reserved_until__gt=timezone.now())
    live = live.filter(version__gt=1).order_by()
    writing = dict(live.values_list("item__queue").annotate(Count("pk")))
    found = list(with_items(queues))
    for queue in found:
        queue.writing = writing.get(queue.pk, 0)
    return found


def counted(rows: QuerySet[Any], by: str) -> Coalesce:
    counts = rows.values(by).annotate(count=Count("pk")).values("count")
    return Coalesce(Subquery(counts, output_field=IntegerField()), 0)
