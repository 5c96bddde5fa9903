"""Review: queues, the next item of one, one's own review, and the opinions that may be seen."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja import Field, Query, Router, Schema

from experiments.api.cursors import Page, Paging, page
from experiments.api.entry import allow
from experiments.api.fields import NO_NUL, Body, Id, Number, find
from experiments.api.problems import Refusal
from experiments.api.versions import must_match, tag_of
from experiments.core import audit, blindness, notify
from experiments.core.audit import Verb
from experiments.models import Review, ReviewItem, ReviewQueue
from experiments.models.api_token import Scope
from experiments.models.member import Role
from experiments.models.review import LABEL_CHARS, NOTE_CHARS
from experiments.reviews import queues, reservation, rubric, writing
from experiments.reviews.writing import Outcome

router = Router(tags=["Review"])

Score = Annotated[int, Field(ge=1, le=5)]


class QueueOut(Schema):
    """Runs that are to be reviewed."""

    id: int
    name: str
    note: str
    owner: str
    created: datetime
    closed: datetime | None
    reviewers_per_item: int
    blind: bool
    items: int
    complete: int = Field(description="items that have all the opinions that are wanted")


class ItemOut(Schema):
    """One run of a queue."""

    queue: int
    number: int
    run: int
    run_seq: int = Field(description="the run's newest event: send it when you submit, as what you have seen")
    complete: bool


class ReviewIn(Body):
    """An opinion by the lines of the rubric, each from 1 to 5; null while it is a draft."""

    supported: Score | None = None
    specific: Score | None = None
    complete: Score | None = None
    confounds: Score | None = None
    samples: Score | None = None
    verdict: Literal["accept", "revise", "reject", ""] = ""
    corrected_label: str = Field("", max_length=LABEL_CHARS, pattern=NO_NUL)
    note: str = Field("", max_length=NOTE_CHARS, pattern=NO_NUL)


class ReviewOut(Schema):
    """A review. One that is `additional` came after others had taken its place."""

    reviewer: str
    state: str
    supported: int | None
    specific: int | None
    complete: int | None
    confounds: int | None
    samples: int | None
    verdict: str
    corrected_label: str
    note: str
    additional: bool
    saved: datetime
    submitted: datetime | None


class Submission(Body):
    """`run_seq`: the run's last event that you have seen; `additional`: even if another took your place."""

    run_seq: int = Field(ge=0)
    additional: bool = False


def queue_out(row: Any) -> QueueOut:
    names = ("name", "note", "created", "closed", "reviewers_per_item", "blind", "complete")
    known = {name: getattr(row, name) for name in names}
    return QueueOut(id=row.pk, owner=row.owner.get_username(), items=row.total, **known)


def item_out(row: ReviewItem) -> ItemOut:
    return ItemOut(
        queue=row.queue_id, number=row.position, run=row.run_id, run_seq=row.run.last_seq, complete=row.complete
    )


def review_out(row: Review) -> ReviewOut:
    names = (*rubric.FIELDS, "state", "saved", "submitted")
    known = {name: getattr(row, name) for name in names}
    additional = row.state == "submitted" and row.slot is None
    return ReviewOut(reviewer=row.reviewer.get_username(), additional=additional, **known)


QUEUES = ReviewQueue.objects.select_related("owner")
ITEMS = ReviewItem.objects.select_related("run")


@router.get("/queues", response=Page[QueueOut], summary="List queues")
def list_queues(request: HttpRequest, paging: Query[Paging]) -> Page[QueueOut]:
    """The newest first."""
    allow(request)
    return page(request, queues.with_items(QUEUES.all()), ["-pk"], paging, queue_out)


@router.get("/queues/{pk}", response=QueueOut, summary="Read a queue")
def read_queue(request: HttpRequest, pk: Id) -> QueueOut:
    allow(request)
    return queue_out(find(queues.with_items(QUEUES.all()), pk=pk))


@router.get("/queues/{pk}/items", response=Page[ItemOut], summary="List the items of a queue")
def list_items(request: HttpRequest, pk: Id, paging: Query[Paging]) -> Page[ItemOut]:
    """In their order."""
    allow(request)
    queue = find(ReviewQueue.objects.all(), pk=pk)
    return page(request, ITEMS.filter(queue=queue), ["position"], paging, item_out)


@router.post("/queues/{pk}/next", response=ItemOut, summary="Reserve the next item")
def reserve_next_item(request: HttpRequest, pk: Id) -> ItemOut:
    """Yours for 20 minutes from the last time you saved; then another reviewer may get it."""
    user = allow(request, Role.REVIEWER, Scope.WRITE)
    queue = find(ReviewQueue.objects.all(), pk=pk)
    review = reservation.take(queue, user)
    if review is None:
        raise Refusal("conflict", "No item waits for you in this queue at the moment.")
    notify.tell(f"queue.{pk}")
    return item_out(review.item)


@router.get("/queues/{pk}/items/{number}/opinions", response=list[ReviewOut], summary="List the opinions of an item")
def list_opinions(request: HttpRequest, pk: Id, number: Number) -> list[ReviewOut]:
    """Those you may see: in a blind queue none before yours is submitted or the item is complete."""
    user = allow(request)
    item = find(ITEMS.all(), queue=pk, position=number)
    rows = blindness.visible(user).filter(item=item).select_related("reviewer").order_by("pk")
    blindness.note_shown(user, [item.pk])
    return [review_out(row) for row in rows]


@router.get("/queues/{pk}/items/{number}/review", response=ReviewOut, summary="Read your review")
def read_review(request: HttpRequest, pk: Id, number: Number) -> ReviewOut:
    """Your own, be it a draft or submitted."""
    user = allow(request)
    return review_out(own(find(ITEMS.all(), queue=pk, position=number), user.pk))


@router.put("/queues/{pk}/items/{number}/review", response=ReviewOut, summary="Save your draft")
def save_review(request: HttpRequest, pk: Id, number: Number, opinion: ReviewIn, response: HttpResponse) -> ReviewOut:
    """Needs the ETag of your review in If-Match, so that what you wrote elsewhere is not lost. Answers with the new
    one, for the next save or to submit."""
    user = allow(request, Role.REVIEWER, Scope.WRITE)
    item = find(ITEMS.all(), queue=pk, position=number)
    with transaction.atomic():
        review = held(request, item, user.pk)
        told(writing.save(item.pk, user, review.version, opinion.model_dump()))
    saved = review_out(own(item, user.pk))
    response["ETag"] = tag_of(request, saved)
    return saved


@router.post("/queues/{pk}/items/{number}/review/submit", response=ReviewOut, summary="Submit your review")
def submit_review(request: HttpRequest, pk: Id, number: Number, submission: Submission) -> ReviewOut:
    """The draft as it is saved. Needs its ETag in If-Match."""
    user = allow(request, Role.REVIEWER, Scope.WRITE)
    item = find(ITEMS.all(), queue=pk, position=number)
    with transaction.atomic():
        review = held(request, item, user.pk)
        fields, seq = rubric.opinion_of(review), submission.run_seq
        outcome = writing.submit(item.pk, user, review.version, fields, seq, submission.additional)
        if outcome.done:
            audit.record(request, Verb.REVIEW_SUBMITTED, review, additional=submission.additional)
            notify.tell(f"queue.{pk}")
    told(outcome)
    return review_out(own(item, user.pk))


def own(item: ReviewItem, user: int) -> Review:
    """This person's review of the item. Raises Refusal."""
    row = item.reviews.select_related("reviewer").filter(reviewer=user).first()
    if row is None:
        raise Refusal("missing", "You have not taken this item.")
    return row


def held(request: HttpRequest, item: ReviewItem, user: int) -> Review:
    """The same, with the item locked, as its writer knows it. Raises Refusal."""
    with reservation.locked(item.pk):
        review = own(item, user)
        must_match(request, review_out(review))
        return review


def told(outcome: Outcome) -> None:
    """Refuse with what stands in the way."""
    if not outcome.done:
        raise Refusal("invalid" if outcome.problem == "incomplete" else "conflict", outcome.words)
