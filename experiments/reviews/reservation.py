"""Reservations: a slot of an item belongs to one reviewer until the reservation lapses.

Every change first locks the row of the item, so that two people never get the same slot. A database constraint
refuses it too.
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
"""How long a reservation lasts after the reviewer's last activity."""
TRIES = 20
"""Items to try before saying that all are taken: another reviewer may be faster at each."""


def reserve_item(queue: ReviewQueue, user: User, wanted: int | None = None) -> Review | None:
    """Reserve the next item of the queue for this person, preferably the one at position `wanted`. None if there is
    none now."""
    for key in list_next(queue, user, wanted):
        review = claim(key, user)
        if review and review.state == ReviewState.DRAFT and review.holds():
            return review
    return None


def list_next(queue: ReviewQueue, user: User, wanted: int | None = None) -> list[int]:
    """Return the keys of the items that this person would get next: their drafts, then items with a free slot."""
    free = waiting(user).filter(queue=queue).order_by("position").values_list("pk", flat=True)
    asked = list(free.filter(position=wanted)) if wanted else []
    open_here = visible_to(ReviewItem.objects.filter(queue=queue, queue__in=queues_of(user), complete=False))
    mine = Review.objects.filter(item__in=open_here, reviewer=user, state=ReviewState.DRAFT)
    drafts = mine.order_by("-saved").values_list("item_id", flat=True)
    # Each once: a draft may also be the one that is asked for.
    return list(dict.fromkeys([*asked, *drafts[:TRIES], *free[:TRIES]]))


@contextmanager
def lock_item(item: int) -> Iterator[ReviewItem]:
    """Yield the item, locked until the transaction ends."""
    with transaction.atomic():
        # Only the item is locked: its queue and its run stay free for others.
        yield ReviewItem.objects.select_for_update(of=("self",)).select_related("queue", "run").get(pk=item)


def claim(item: int, user: User) -> Review | None:
    """Return this person's review of the item, or None. A draft gets a slot if one is free."""
    with lock_item(item) as row:
        review = row.reviews.filter(reviewer=user).first()
        if review and review.state != ReviewState.DRAFT:
            return review
        if not queues_of(user).filter(pk=row.queue_id).exists():
            return review
        slot = find_free_slot(row, user)
        if slot is None:
            return review
        if review is None:
            # The last event at this moment: later ones are news to this reviewer.
            review = Review(item=row, reviewer=user, seq=row.run.last_seq)
        review.slot, review.reserved_until = slot, timezone.now() + LENGTH
        review.save()
        return review


def find_free_slot(item: ReviewItem, user: User) -> int | None:
    """Return a slot for this person: their own, else an unused one, else one with a lapsed reservation. The item must
    be locked."""
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
            # The previous holder keeps the draft, without a slot
            Review.objects.filter(pk=taken[slot].pk).update(slot=None, reserved_until=None)
            return slot
    return None


def has_room(item: ReviewItem, user: User) -> bool:
    """True if `find_free_slot` would find a slot for this person. Nothing is changed."""
    held = [review for review in item.reviews.filter(slot__isnull=False).exclude(reviewer=user) if review.holds()]
    return len(held) < item.queue.reviewers_per_item


def update_complete(item: ReviewItem) -> None:
    """Update whether the item has all the reviews that its queue asks for."""
    was_complete = item.complete
    submitted = item.reviews.filter(state=ReviewState.SUBMITTED, slot__isnull=False).count()
    item.complete = submitted >= item.queue.reviewers_per_item
    item.save(update_fields=["complete"])
    # Also when it is no longer complete: an undone review takes a verdict back.
    if was_complete or item.complete:
        projection.project([item.run_id])
