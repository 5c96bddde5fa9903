"""Actions of review: create, fill and close queues; take, review, decline, undo and settle items.

A draft is always stored before a submission can be refused, so no typed text is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils import timezone

from experiments.core import audit, blindness, notifications, notify, outbox
from experiments.core.access import may_change, role_of
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.blindness import MAKES_QUEUES, UNDO
from experiments.core.errors import InvalidInput, OutOfDate, StateConflict
from experiments.models import (
    Adjudication,
    NotificationKind,
    Review,
    ReviewItem,
    ReviewQueue,
    ReviewState,
    ReviewVerdict,
    Role,
    Run,
)
from experiments.models.review import LABEL_CHARS
from experiments.reviews import projection, reservation, rubric
from experiments.reviews.reservation import LENGTH
from workers import registry
from workers.record.statuses import ENDED

MAX_RUNS = 10_000
"""Maximum number of runs in one queue."""
MAX_REVIEWERS, NOTE_CHARS = 9, 2_000
"""Maximum reviewers per item, and length of a queue's note to its reviewers."""
QUERY_CHARS = 20_000
"""Maximum length of a filter; a thousand selected runs fit."""
BATCH = 1_000
DECLINE_CHARS, FINAL_CHARS = 1_000, 4_000
"""Maximum length of the reasons for declining an item and for a final verdict."""


class NotSubmitted(StateConflict):
    """The draft is stored but not submitted.

    `reason` tells what helps. "run": look at the new events of the run. "taken": send it as an additional review.
    "over": nothing, the item is read-only.
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


# --- queues ---------------------------------------------------------------------------------------------------


@transaction.atomic
def make_queue(actor: Actor, runs: QuerySet[Run], queue: ReviewQueue, reviewers: Sequence[User] = ()) -> ReviewQueue:
    """Save a queue of these runs in their order and notify its reviewers. Empty `reviewers`: anyone with the role
    can review."""
    if not (count := runs.count()):
        raise InvalidInput("No run is chosen: a queue needs at least one.")
    if count > MAX_RUNS:
        words = f"{count:,} runs are chosen, and a queue holds at most {MAX_RUNS:,}. Narrow the list down first."
        raise InvalidInput(words)
    if reviewers and len(reviewers) < queue.reviewers_per_item:
        words = f"Name at least {queue.reviewers_per_item} reviewers, or none: each run needs that many reviews."
        raise InvalidInput(words, "reviewers")
    queue.owner = actor.person
    queue.save()
    queue.reviewers.set(reviewers)
    rows = runs.values_list("pk", "last_seq")
    ReviewItem.objects.bulk_create(
        (ReviewItem(queue=queue, run_id=key, position=place, seen_seq=seq) for place, (key, seq) in enumerate(rows, 1)),
        batch_size=BATCH,
    )
    details = {"filters": queue.filters} if queue.filters else {}
    audit.record(actor, Verb.QUEUE_CREATED, queue, items=count, **details)
    words = f"{actor.name} asks you to review {count:,} run{'' if count == 1 else 's'} in “{queue.name}”."
    _tell_reviewers(queue, actor, words)
    outbox.announce_queue(queue, count)
    _publish(queue.pk)
    return queue


def list_own_runs(runs: QuerySet[Run], user: User) -> QuerySet[Run]:
    """Return the runs that this person may add to review: all for an admin, else their own."""
    return runs if role_of(user) == Role.ADMIN else runs.filter(owner=user)


def list_ended_runs(runs: QuerySet[Run]) -> QuerySet[Run]:
    return runs.filter(status__in=ENDED)


def may_put_up(run: Run, user: User, role: Role) -> bool:
    """True if this person, with this role, may add the run to review."""
    return run.has_ended and role >= MAKES_QUEUES and may_change(user, run.owner_id)


@transaction.atomic
def add_run(actor: Actor, run: Run, queue: int) -> ReviewItem:
    """Append an ended run to an open queue and notify the reviewers that the queue names."""
    if not list_own_runs(Run.objects.filter(pk=run.pk), actor.person).exists():
        raise StateConflict("Add runs of your own; an admin may add any.")
    if not run.has_ended:
        raise StateConflict("This run has not ended: it can be reviewed once it has.")
    # Locked: the queue stays open, and no other run gets the same position
    row = ReviewQueue.objects.select_for_update().filter(pk=queue, closed=None).first()
    if row is None:
        raise StateConflict("This queue is closed or does not exist. Choose an open one.")
    if row.items.filter(run=run).exists():
        raise StateConflict(f"Run {run.pk} is in this queue already.")
    last = row.items.aggregate(Max("position"))["position__max"] or 0
    if last >= MAX_RUNS:
        raise StateConflict(f"This queue holds {MAX_RUNS:,} runs, and takes no more. Choose another.")
    item = ReviewItem.objects.create(queue=row, run=run, position=last + 1, seen_seq=run.last_seq)
    audit.record(actor, Verb.RUN_PUT_UP, run, queue=queue)
    _tell_reviewers(row, actor, f"{actor.name} added {notifications.name_run(run)} to review in “{row.name}”.")
    outbox.announce_queue(row, 1)
    _publish(queue)
    return item


def _tell_reviewers(queue: ReviewQueue, actor: Actor, words: str) -> None:
    """Notify the reviewers that the queue names, except the actor."""
    for reviewer in queue.reviewers.exclude(pk=actor.person.pk):
        notifications.notify_person(reviewer, NotificationKind.REVIEW, words, queue.get_absolute_url())


def may_close(user: User, queue: ReviewQueue) -> bool:
    """True for an admin and for the owner of the open queue."""
    return queue.closed is None and may_change(user, queue.owner_id)


@transaction.atomic
def close_queue(actor: Actor, queue: ReviewQueue) -> bool:
    """Close the queue; reviews submitted so far count. Returns False if it is closed already."""
    if queue.closed is None and not may_close(actor.person, queue):
        raise PermissionDenied("A queue is closed by an admin, or by who made it.")
    if not ReviewQueue.objects.filter(pk=queue.pk, closed=None).update(closed=timezone.now()):
        return False
    # Reviews of incomplete items count only now, so their runs get a verdict
    begun = queue.items.filter(complete=False, reviews__state=ReviewState.SUBMITTED).distinct()
    projection.project(begun.values_list("run_id", flat=True))
    audit.record(actor, Verb.QUEUE_CLOSED, queue)
    _publish(queue.pk)
    return True


def _publish(queue: int) -> None:
    """Tell pages that show the queue to reload it."""
    notify.publish_topic(f"queue.{queue}")


# --- reservations ---------------------------------------------------------------------------------------------


def take_next(actor: Actor, queue: ReviewQueue, wanted: int | None = None) -> Review | None:
    """Reserve the next item for this person, preferably the one at position `wanted`. None if there is none now."""
    review = reservation.reserve_item(queue, actor.person, wanted)
    if review is not None:
        _publish(queue.pk)
    return review


def take_item(actor: Actor, item: ReviewItem) -> Review:
    """Reserve this item. A finished review is returned unchanged. Raises StateConflict if no slot is free."""
    review = reservation.claim(item.pk, actor.person)
    if review is None or (review.state == ReviewState.DRAFT and not review.holds()):
        raise StateConflict("Other reviewers have reserved this item, or you cannot review it.")
    _publish(item.queue_id)
    return review


def hold_item(actor: Actor, item: ReviewItem) -> Review | None:
    """Renew the reservation of an open page. None if this person has not begun the item; nothing new is reserved."""
    begun = item.reviews.filter(reviewer=actor.person).exists()
    return reservation.claim(item.pk, actor.person) if begun else None


# --- what a reviewer writes -----------------------------------------------------------------------------------


def save_draft(actor: Actor, item: int, version: int, fields: Mapping[str, Any]) -> Review:
    """Store a draft. `version` is the version that the reviewer edited; `fields` come from `rubric.opinion_from`.

    The draft has no slot if the reservation lapsed and another reviewer took it.
    """
    with reservation.lock_item(item) as row:
        return _write(row, actor.person, version, fields)


def submit(
    actor: Actor, item: int, version: int, fields: Mapping[str, Any], seq: int, *, additional: bool = False
) -> Review:
    """Submit a review. `seq` is the run's last event that the reviewer has seen; `additional` submits even without a
    slot.

    A refused submission is stored as a draft before the error is raised. Never call this inside a transaction: the
    error would roll the draft back.
    """
    with reservation.lock_item(item) as row:
        review = _write(row, actor.person, version, fields)
        hindrance = _find_hindrance(row, review, seq, additional)
        if hindrance is None:
            review.state, review.submitted = ReviewState.SUBMITTED, timezone.now()
            review.seq, review.reserved_until = row.run.last_seq, None
            review.save()
            reservation.update_complete(row)
            audit.record(actor, Verb.REVIEW_SUBMITTED, review, additional=review.slot is None)
            _publish(row.queue_id)
    # Outside the transaction, so that the draft is kept
    if hindrance is not None:
        raise hindrance
    return review


def _write(item: ReviewItem, user: User, version: int, fields: Mapping[str, Any]) -> Review:
    """Store the fields and renew the reservation. A lapsed slot is taken again if it is free."""
    review = _open_draft(item, user)
    if review.version != version and rubric.opinion_of(review) != dict(fields):
        raise OutOfDate(f"This draft was changed elsewhere at {clock(review.saved)}, in another tab or by a script.")
    for name, value in fields.items():
        setattr(review, name, value)
    # The slot is looked up at each save: it may have lapsed and been taken by another reviewer
    if item.queue.closed is None:
        review.slot = reservation.find_free_slot(item, user)
    review.reserved_until = timezone.now() + LENGTH if review.slot else None
    review.version += 1
    review.saved = timezone.now()
    review.save()
    return review


def _open_draft(item: ReviewItem, user: User) -> Review:
    review = item.reviews.filter(reviewer=user).first()
    if review is None:
        raise NotSubmitted("You have not taken this item. Take it first, then write.", "over")
    if review.state == ReviewState.SUBMITTED:
        words = f"You submitted your review of this item at {clock(review.submitted)}. That one stands."
        raise NotSubmitted(words, "over")
    if review.state == ReviewState.DECLINED:
        raise NotSubmitted("You declined this item, and it went to another reviewer.", "over")
    return review


def _find_hindrance(item: ReviewItem, review: Review, seq: int, additional: bool) -> InvalidInput | NotSubmitted | None:
    """Return why the stored draft cannot be submitted as it is; None if it can."""
    if item.queue.closed:
        return NotSubmitted("The queue was closed in the meantime. Your draft is kept.", "over")
    if lacking := rubric.list_missing(review):
        return InvalidInput(f"Still to be filled in: {', '.join(lacking)}.")
    if seq < item.run.last_seq:
        count = item.run.last_seq - seq
        words = f"The run has {count} new event{'s' * (count > 1)} since you opened it. Your draft is kept."
        return NotSubmitted(words, "run")
    if review.slot is None and not additional:
        words = "Your reservation lapsed, and another reviewer has taken the place. Your draft is kept."
        return NotSubmitted(words, "taken")
    return None


def clock(time: datetime | None) -> str:
    """Format a time as pages show it."""
    return f"{time:%H:%M} UTC" if time else ""


def decline(actor: Actor, item: int, reason: str) -> Review:
    """Leave the item to another reviewer, with a reason."""
    with reservation.lock_item(item) as row:
        review = _open_draft(row, actor.person)
        if not reason.strip() or len(reason) > DECLINE_CHARS or "\x00" in reason:
            words = f"Give a reason in 1 to {DECLINE_CHARS:,} characters: the owner of the queue will read it."
            raise InvalidInput(words, "reason")
        review.state, review.reason = ReviewState.DECLINED, reason.strip()
        review.slot = review.reserved_until = None
        review.version += 1
        review.save()
        audit.record(actor, Verb.REVIEW_DECLINED, review, reason=review.reason)
        _publish(row.queue_id)
    return review


def undo(actor: Actor, queue: ReviewQueue) -> Review:
    """Turn this person's last submission in the queue back into a draft, in the same slot."""
    last = _last_submission(queue, actor.person)
    if last is None:
        minutes = int(UNDO.total_seconds() // 60)
        raise StateConflict(f"There is no submission of yours from the last {minutes} minutes to undo.")
    with reservation.lock_item(last.item_id) as row:
        review = row.reviews.select_related("item__queue", "item__run").get(pk=last.pk)
        if review.state != ReviewState.SUBMITTED:
            raise StateConflict("That submission has been taken back already.")
        if why := _explain_no_undo(review):
            raise StateConflict(f"{why}, so your review cannot be undone.")
        review.state, review.submitted = ReviewState.DRAFT, None
        review.reserved_until = timezone.now() + LENGTH if review.slot else None
        review.version += 1
        review.save()
        reservation.update_complete(row)
        audit.record(actor, Verb.REVIEW_WITHDRAWN, review)
        _publish(row.queue_id)
    return review


def find_undoable(queue: ReviewQueue, user: User) -> Review | None:
    """Return the submission that `undo` would take back."""
    last = _last_submission(queue, user)
    return last if last is not None and not _explain_no_undo(last) else None


def _last_submission(queue: ReviewQueue, user: User) -> Review | None:
    """Return this person's newest submission in the queue while it can still be undone."""
    here = Review.objects.filter(reviewer=user, item__queue=queue, item__queue__closed=None)
    rows = here.filter(state=ReviewState.SUBMITTED, submitted__gt=timezone.now() - UNDO)
    return rows.select_related("item__queue", "item__run").order_by("-submitted", "-pk").first()


def _explain_no_undo(review: Review) -> str:
    """Return why a submission cannot be undone; "" if it can."""
    # A reviewer who knows more by now could replace a blind review by one that is not
    item = review.item
    if review.opinions_shown:
        return f"You have seen other reviews of item {item.position} since you submitted"
    if item.queue.blind and item.run.system_kind == registry.BLINDED_KIND:
        return f"You have been able to see the system of item {item.position} since you submitted"
    return f"There is a final verdict on item {item.position}" if item.adjudications.exists() else ""


# --- final verdicts -------------------------------------------------------------------------------------------


def explain_no_verdict(user: User, item: ReviewItem) -> str:
    """Return why this person may not give the final verdict; "" if they may.

    Admins may, and reviewers who neither reviewed the item nor own the run: people do not settle a dispute in which
    they take part.
    """
    role = role_of(user) or Role.VIEWER
    submitted = item.reviews.filter(state=ReviewState.SUBMITTED)
    if role < Role.REVIEWER:
        return "Only admins, and reviewers who have not reviewed this item, can give a final verdict."
    if not (item.complete or item.queue.closed):
        return "A final verdict is given once the item is complete or its queue is closed."
    if not submitted.exists():
        return "There is no review to settle: this item has no reviews yet."
    if blindness.is_blind(user, item.run_id):
        return "You still have to review this run blind: submit or decline your review first."
    if role == Role.ADMIN:
        return ""
    if submitted.filter(reviewer=user).exists():
        return "You are among the reviewers: another reviewer or an admin gives the final verdict."
    return "You asked for this run: another reviewer or an admin gives the final verdict." * (item.run.owner == user)


def settle_item(actor: Actor, item: int, verdict: str, label: str, reason: str) -> Adjudication:
    """Give the final verdict on an item. A later one replaces it."""
    verdict, label, reason = verdict.strip(), label.strip(), reason.replace("\r\n", "\n").strip()
    if verdict not in ReviewVerdict.values:
        raise InvalidInput(f"Choose the final verdict: one of {', '.join(ReviewVerdict.values)}.", "verdict")
    if len(label) > LABEL_CHARS:
        words = f"The corrected label has {len(label):,} characters; at most {LABEL_CHARS} are kept."
        raise InvalidInput(words, "corrected_label")
    if not reason or len(reason) > FINAL_CHARS:
        words = f"Say why in 1 to {FINAL_CHARS:,} characters: the author and the reviewers will read it."
        raise InvalidInput(words, "reason")
    if "\x00" in label + reason:
        raise InvalidInput("The text contains a zero byte, which cannot be stored. Remove it.")
    with reservation.lock_item(item) as row:
        if problem := explain_no_verdict(actor.person, row):
            raise StateConflict(problem)
        final = Adjudication.objects.create(
            item=row, adjudicator=actor.person, verdict=verdict, corrected_label=label, reason=reason
        )
        projection.project([row.run_id], by=actor.person)
        audit.record(actor, Verb.REVIEW_ADJUDICATED, row, final_verdict=final.pk)
        _publish(row.queue_id)
    return final
