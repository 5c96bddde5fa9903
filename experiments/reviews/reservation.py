"""Reservations: whose turn an item is. A slot of an item is one reviewer's, until the reservation lapses.

Every change locks the row of the item first, so that two people never get the same slot; the database refuses it too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from experiments.core.blindness import queues_of, waiting
from experiments.core.visibility import visible_to
from experiments.models import Review, ReviewItem, ReviewQueue, ReviewState
from experiments.reviews import projection

LENGTH = timedelta(minutes=20)
"""How long a reservation lasts after the last sign of its reviewer."""
TRIES = 20
"""Items that are tried before it is said that others hold them all: somebody may be quicker at each."""


def take(queue: ReviewQueue, user: User, wanted: int | None = None) -> Review | None:
    """The next item of the queue for this person, reserved; the one at the position `wanted`, if it is to be had.
    None if there is none at the moment."""
    for key in list_next(queue, user, wanted):
        review = claim(key, user)
        if review and review.state == ReviewState.DRAFT and review.holds():
            return review
    return None


def list_next(queue: ReviewQueue, user: User, wanted: int | None = None) -> list[int]:
    """Keys of the items that this person would get next: their drafts first, then those with a free slot."""
    free = waiting(user).filter(queue=queue).order_by("position").values_list("pk", flat=True)
    asked = list(free.filter(position=wanted)) if wanted else []
    open_here = visible_to(ReviewItem.objects.filter(queue=queue, queue__in=queues_of(user), complete=False))
    mine = Review.objects.filter(item__in=open_here, reviewer=user, state=ReviewState.DRAFT)
    drafts = mine.order_by("-saved").values_list("item_id", flat=True)
    return list(dict.fromkeys([*asked, *drafts[:TRIES], *free[:TRIES]]))


@contextmanager
def lock_item(item: int) -> Iterator[ReviewItem]:
    """The item, which nobody else changes until the transaction ends."""
    with transaction.atomic():
        yield ReviewItem.objects.select_for_update(of=("self",)).select_related("queue", "run").get(pk=item)


def claim(item: int, user: User) -> Review | None:
    """This person's review of the item. A draft has a slot again, if there is one; None if there never was."""
    with lock_item(item) as row:
        review = row.reviews.filter(reviewer=user).first()
        if review and review.state != ReviewState.DRAFT:
            return review
        if not queues_of(user).filter(pk=row.queue_id).exists():
            return review
        slot = free_slot(row, user)
        if slot is None:
            return review
        if review is None:
            review = Review(item=row, reviewer=user, seq=row.run.last_seq)
        review.slot, review.reserved_until = slot, timezone.now() + LENGTH
        review.save()
        return review


def free_slot(item: ReviewItem, user: User) -> int | None:
    """A slot that this person may have: their own, else one that nobody holds, else one whose reservation lapsed.

    The item must be locked. Who held a lapsed one keeps the draft without a slot.
    """
    taken = {review.slot: review for review in item.reviews.filter(slot__isnull=False)}
    slots = range(1, item.queue.reviewers_per_item + 1)
    for slot in slots:
        if slot in taken and taken[slot].reviewer_id == user.pk:
            return slot
    for slot in slots:
        if slot not in taken:
            return slot
    for slot in slots:
        if not taken[slot].holds():
            Review.objects.filter(pk=taken[slot].pk).update(slot=None, reserved_until=None)
            return slot
    return None


def has_room(item: ReviewItem, user: User) -> bool:
    """Whether `free_slot` would find one for this person; nothing is changed."""
    held = [review for review in item.reviews.filter(slot__isnull=False).exclude(reviewer=user) if review.holds()]
    return len(held) < item.queue.reviewers_per_item


def update_complete(item: ReviewItem) -> None:
    """Keep in step whether the item has all the opinions that its queue asks for."""
    was_complete = item.complete
    submitted = item.reviews.filter(state=ReviewState.SUBMITTED, slot__isnull=False).count()
    item.complete = submitted >= item.queue.reviewers_per_item
    item.save(update_fields=["complete"])
    if was_complete or item.complete:
        projection.project([item.run_id])
