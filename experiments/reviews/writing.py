"""What a reviewer does with an item: save a draft, submit, decline, undo. Nothing typed is ever lost: whatever stands
in the way of submitting, the draft is kept first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from experiments.core.review_rights import UNDO
from experiments.models import Review, ReviewItem, ReviewQueue
from experiments.models.review import State
from experiments.reviews import reservation, rubric
from experiments.reviews.reservation import LENGTH
from workers import registry

REASON_CHARS = 1_000


@dataclass(frozen=True)
class Outcome:
    """What came of it. `problem` is "" if it was done, else why not: "version", "submitted", "declined", "closed",
    "incomplete", "run", "taken", "none" or "late"; `words` tell a person."""

    review: Review | None
    problem: str = ""
    words: str = ""

    @property
    def done(self) -> bool:
        return not self.problem


def clock(time: datetime | None) -> str:
    """An hour as pages write it."""
    return f"{time:%H:%M} UTC" if time else ""


def save(item: int, user: User, version: int, fields: Mapping[str, Any]) -> Outcome:
    """Keep a draft. `version` is that of the draft which the reviewer changed; `fields` as rubric.opinion_from."""
    with reservation.locked(item) as row:
        review = row.reviews.filter(reviewer=user).first()
        if problem := obstacle(review, version, fields):
            return problem
        assert review is not None
        write(row, review, user, fields)
        if review.slot is None and row.queue.closed is None:
            return Outcome(
                review, words="Your reservation lapsed and another reviewer has the place. The draft is kept."
            )
        return Outcome(review)


def submit(
    item: int, user: User, version: int, fields: Mapping[str, Any], seq: int, additional: bool = False
) -> Outcome:
    """Submit. `seq` is the run's last event that the reviewer has seen; `additional`: even if the place is taken."""
    with reservation.locked(item) as row:
        review = row.reviews.filter(reviewer=user).first()
        if problem := obstacle(review, version, fields):
            return problem
        assert review is not None
        write(row, review, user, fields)
        if problem := hindrance(row, review, seq, additional):
            return problem
        review.state, review.submitted = State.SUBMITTED, timezone.now()
        review.seq, review.reserved_until = row.run.last_seq, None
        review.save()
        reservation.settle(row)
        return Outcome(review)


def obstacle(review: Review | None, version: int, fields: Mapping[str, Any]) -> Outcome | None:
    """Why nothing can be written to the draft; None if it can be."""
    if review is None:
        return Outcome(None, "none", "You have not taken this item. Take it first, then write.")
    if review.state == State.SUBMITTED:
        words = f"You submitted your review of this item at {clock(review.submitted)}. That one stands."
        return Outcome(review, "submitted", words)
    if review.state == State.DECLINED:
        return Outcome(review, "declined", "You declined this item, and it went to another reviewer.")
    if review.version != version and rubric.opinion_of(review) != dict(fields):
        words = f"This draft was changed elsewhere at {clock(review.saved)}, in another tab or by a script."
        return Outcome(review, "version", words)
    return None


def write(item: ReviewItem, review: Review, user: User, fields: Mapping[str, Any]) -> None:
    """The draft with these fields, its reservation renewed; the slot again, if it lapsed and is still free."""
    for name, value in fields.items():
        setattr(review, name, value)
    if item.queue.closed is None:
        review.slot = reservation.free_slot(item, user)
    review.reserved_until = timezone.now() + LENGTH if review.slot else None
    review.version += 1
    review.saved = timezone.now()
    review.save()


def hindrance(item: ReviewItem, review: Review, seq: int, additional: bool) -> Outcome | None:
    """Why the draft, which is kept, cannot be submitted as it is; None if it can be."""
    if item.queue.closed:
        return Outcome(review, "closed", "The queue was closed in the meantime. Your draft is kept.")
    if lacking := rubric.missing(review):
        return Outcome(review, "incomplete", f"Still to be filled in: {', '.join(lacking)}.")
    if seq < item.run.last_seq:
        count = item.run.last_seq - seq
        words = f"The run has gone on: {count} event{'s' * (count > 1)} since you opened it. Your draft is kept."
        return Outcome(review, "run", words)
    if review.slot is None and not additional:
        words = "Your reservation lapsed, and another reviewer has taken the place. Your draft is kept."
        return Outcome(review, "taken", words)
    return None


def decline(item: int, user: User, reason: str) -> Outcome:
    """Leave the item to another reviewer, with a reason."""
    with reservation.locked(item) as row:
        review = row.reviews.filter(reviewer=user).first()
        if review is None or review.state != State.DRAFT:
            version = review.version if review else 0
            return obstacle(review, version, {}) or Outcome(review)
        if not reason.strip() or len(reason) > REASON_CHARS or "\x00" in reason:
            words = f"Say why in 1 to {REASON_CHARS:,} characters: whoever made the queue will read it."
            return Outcome(review, "incomplete", words)
        review.state, review.reason = State.DECLINED, reason.strip()
        review.version += 1
        reservation.let_go(review)
        review.save()
        return Outcome(review)


def undo(queue: ReviewQueue, user: User) -> Outcome:
    """Take back this person's last submission in the queue: a draft again, in the same place."""
    last = undoable(queue, user)
    if last is None:
        return Outcome(None, "late", why_not_undone(queue, user))
    with reservation.locked(last.item_id) as row:
        review = row.reviews.get(pk=last.pk)
        if review.state != State.SUBMITTED:
            return Outcome(review, "none", "That submission has been taken back already.")
        if review.opinions_shown:
            return Outcome(review, "late", why_not_undone(queue, user))
        review.state, review.submitted = State.DRAFT, None
        review.reserved_until = timezone.now() + LENGTH if review.slot else None
        review.version += 1
        review.save()
        reservation.settle(row)
        return Outcome(review)


def undoable(queue: ReviewQueue, user: User) -> Review | None:
    """The submission that `undo` would take back. None once its writer has seen what others say of the run, or may read
    what it studied: an opinion formed unseen would be exchanged for one that is not; none either once somebody gave a
    final verdict."""
    last = last_submission(queue, user)
    if last is None or last.opinions_shown or tells_its_system(last) or last.item.adjudications.exists():
        return None
    return last


def tells_its_system(review: Review) -> bool:
    """Whether submitting told its writer what a synthetic neuron is called."""
    return review.item.queue.blind and review.item.run.system_kind == registry.BLINDED_KIND


def last_submission(queue: ReviewQueue, user: User) -> Review | None:
    """This person's newest of the queue, while it is new enough to be taken back."""
    rows = Review.objects.filter(reviewer=user, state=State.SUBMITTED, item__queue=queue, item__queue__closed=None)
    rows = rows.filter(submitted__gt=timezone.now() - UNDO).order_by("-submitted", "-pk")
    return rows.select_related("item__queue", "item__run").first()


def why_not_undone(queue: ReviewQueue, user: User) -> str:
    last = last_submission(queue, user)
    if last is None:
        minutes = int(UNDO.total_seconds() // 60)
        return f"There is no submission of yours from the last {minutes} minutes to undo."
    item = f"item {last.item.position}"
    if last.opinions_shown:
        return f"You have seen what others say of {item} since you submitted: your review stands."
    if tells_its_system(last):
        return f"What {item} studied is open to you since you submitted: your review stands."
    return f"There is a final verdict on {item}: your review stands."
