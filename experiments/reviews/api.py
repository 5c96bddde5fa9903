"""API of review: queues, the next item, your review, reviews of others, final verdicts, and agreement."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from ninja import Field, Query, Router, Schema, Status

from experiments.api.auth import authorize
from experiments.api.cursors import ListPage, Paging, page
from experiments.api.fields import NO_NUL, Body, Id, Number, RowNumber, RowOut, UserName, Whole, find
from experiments.api.filters import read_filters, with_filters
from experiments.api.idempotency import answer_once
from experiments.api.problems import Refusal
from experiments.api.versions import must_match, tag_of
from experiments.core import blindness
from experiments.core.actors import Actor
from experiments.core.blindness import MAKES_QUEUES
from experiments.core.errors import InvalidInput, StateConflict
from experiments.core.visibility import visible_to
from experiments.models import Review, ReviewItem, ReviewQueue, Role, Run, TokenScope
from experiments.models.review import LABEL_CHARS, NOTE_CHARS
from experiments.reviews import actions, lists, queue_lists, rubric
from experiments.reviews.agreement import lists as agreement
from experiments.runs import lists as run_lists

router = Router(tags=["Review"])

Score = Annotated[int, Field(ge=1, le=5)]
Name = Annotated[str, Field(min_length=1, max_length=80, pattern=NO_NUL)]


class QueueIn(Body):
    """A new queue of ended runs: named runs, or those that a filter selects. Only admins can add runs of others."""

    name: Name
    runs: list[RowNumber] = Field([], max_length=1_000)
    query: str = Field(
        "",
        max_length=actions.QUERY_CHARS,
        pattern=NO_NUL,
        description="in place of runs: as in the address of the page Runs",
    )
    only_ended: bool = Field(True, description="of a filter: leave out runs that have not ended")
    note: str = Field("", max_length=actions.NOTE_CHARS, pattern=NO_NUL)
    reviewers_per_item: int = Field(1, ge=1, le=actions.MAX_REVIEWERS)
    blind: bool = True
    reviewers: list[str] = Field([], max_length=100, description="user names; empty: anyone who may review")


class QueueOut(RowOut):
    """A queue of runs to review."""

    id: int
    name: str
    note: str
    owner: UserName
    created: datetime
    closed: datetime | None
    reviewers_per_item: int
    blind: bool
    items: int = Field(validation_alias="total")
    complete: int = Field(description="items that have all the reviews that are wanted")


@with_filters(queue_lists.FILTERS)
class QueueFilters(Schema):
    """Filters as on the Review page. All are optional."""


@with_filters(lists.ITEM_FILTERS)
class ItemFilters(Schema):
    """Filters as on the page of the queue. All are optional."""


class ItemOut(RowOut):
    """One run of a queue."""

    queue: int = Field(validation_alias="queue_id")
    number: int = Field(validation_alias="position")
    run: int = Field(validation_alias="run_id")
    run_seq: int = Field(
        validation_alias="run.last_seq",
        description="the run's newest event: send it when you submit, as what you have seen",
    )
    complete: bool


class ReviewIn(Body):
    """A review by the criteria of the rubric, each scored from 1 to 5; null while it is a draft."""

    supported: Score | None = None
    specific: Score | None = None
    complete: Score | None = None
    confounds: Score | None = None
    samples: Score | None = None
    verdict: Literal["accept", "revise", "reject", ""] = ""
    corrected_label: str = Field("", max_length=LABEL_CHARS, pattern=NO_NUL)
    note: str = Field("", max_length=NOTE_CHARS, pattern=NO_NUL)


class ReviewOut(RowOut):
    """A review. An `additional` one came after others had taken its slot."""

    reviewer: UserName
    state: str
    supported: int | None
    specific: int | None
    complete: int | None
    confounds: int | None
    samples: int | None
    verdict: str
    corrected_label: str
    note: str
    additional: bool = Field(validation_alias="is_additional")
    saved: datetime
    submitted: datetime | None


class Submission(Body):
    """`run_seq`: the run's last event that you have seen. `additional`: submit even if your slot was taken."""

    run_seq: Whole
    additional: bool = False


class Declination(Body):
    reason: str = Field(min_length=1, max_length=actions.DECLINE_CHARS, pattern=NO_NUL)


class ReviewedRun(Body):
    run: RowNumber


class FinalIn(Body):
    """The final verdict on the run, and why."""

    verdict: Literal["accept", "revise", "reject"]
    corrected_label: str = Field("", max_length=LABEL_CHARS, pattern=NO_NUL)
    reason: str = Field(min_length=1, max_length=actions.FINAL_CHARS, pattern=NO_NUL)


class FinalOut(RowOut):
    """A final verdict. The newest one of an item counts."""

    adjudicator: UserName
    verdict: str
    corrected_label: str
    reason: str
    created: datetime


class MeasureOut(RowOut):
    """A measure on one criterion, over all reviewers or two, with its 95 % interval. `why` explains a missing value."""

    line: str
    measure: str
    one: str
    other: str
    n: int = Field(validation_alias="figure.n")
    value: float | None = Field(validation_alias="figure.value")
    low: float | None = Field(validation_alias="figure.low")
    high: float | None = Field(validation_alias="figure.high")
    why: str = Field(validation_alias="figure.why")


class AgreementOut(Schema):
    """`left_out`: reviews that are not counted, because you may still review those items."""

    measures: list[MeasureOut]
    left_out: int


def _queue_read(pk: int) -> QueueOut:
    return QueueOut.from_orm(find(lists.with_items(ReviewQueue.objects.all()), pk=pk))


def _item_at(queue: int, number: int) -> ReviewItem:
    return find(visible_to(ReviewItem.objects.select_related("run", "queue")), queue=queue, position=number)


# --- queues ---


@router.get("/queues", response=ListPage[QueueOut], summary="List queues")
def list_queues(request: HttpRequest, asked: Query[QueueFilters], paging: Query[Paging]) -> ListPage[QueueOut]:
    """Newest first, filtered as on the Review page."""
    user = authorize(request)
    found = queue_lists.queues_from(read_filters(asked), user)
    return page(request, found.require_sense(), ["-pk"], paging, QueueOut.from_orm)


@router.post("/queues", response={201: QueueOut}, summary="Create a queue")
def create_queue(request: HttpRequest, plan: QueueIn, response: HttpResponse) -> Status[object]:
    """Notifies named reviewers. Named runs that cannot be queued are refused; a filter leaves out runs of others."""
    by = Actor.behind(request, authorize(request, MAKES_QUEUES, TokenScope.WRITE))

    def make() -> tuple[QueueOut, str]:
        runs = _choose_runs(by, plan)
        people = list(lists.reviewers().filter(username__in=plan.reviewers))
        if unknown := set(plan.reviewers) - {each.username for each in people}:
            raise InvalidInput(f"No reviewers have these user names: {', '.join(sorted(unknown))}.", "reviewers")
        known = plan.model_dump(include={"name", "note", "blind", "reviewers_per_item"})
        queue = actions.make_queue(by, runs, ReviewQueue(**known, filters=plan.query), people)
        return _queue_read(queue.pk), reverse("api:read_queue", args=[queue.pk])

    return Status(201, answer_once(request, response, by.person, make))


def _choose_runs(actor: Actor, plan: QueueIn) -> QuerySet[Run]:
    """Return the runs to queue. Unlike on the page, invalid filters and unsuitable runs are refused."""
    if bool(plan.runs) == bool(plan.query):
        raise InvalidInput("Give either runs or a filter that selects them.", "runs")
    if plan.runs:
        rows = actions.list_ended_runs(actions.list_own_runs(Run.objects.filter(pk__in=plan.runs), actor.person))
        if left := set(plan.runs) - set(rows.values_list("pk", flat=True)):
            words = f"You cannot queue these, or they are active or missing: {', '.join(map(str, sorted(left)))}."
            raise InvalidInput(words, "runs")
        return rows.order_by("pk")
    found = run_lists.runs_from(QueryDict(plan.query).dict(), actor.person)
    for name, problem in found.problems.items():
        raise InvalidInput(f"{name}: {problem}", "query")
    theirs = actions.list_own_runs(found.runs, actor.person)
    return actions.list_ended_runs(theirs) if plan.only_ended else theirs


@router.get("/queues/{pk}", response=QueueOut, summary="Read a queue")
def read_queue(request: HttpRequest, pk: Id) -> QueueOut:
    authorize(request)
    return _queue_read(pk)


@router.post("/queues/{pk}/close", response=QueueOut, summary="Close a queue")
def close_queue(request: HttpRequest, pk: Id) -> QueueOut:
    """Closes the queue for good and opens its reviews to the team. Requires the owner or an admin."""
    user = authorize(request, MAKES_QUEUES, TokenScope.WRITE)
    actions.close_queue(Actor.behind(request, user), find(ReviewQueue.objects.all(), pk=pk))
    return _queue_read(pk)


@router.get("/queues/{pk}/items", response=ListPage[ItemOut], summary="List the items of a queue")
def list_items(request: HttpRequest, pk: Id, asked: Query[ItemFilters], paging: Query[Paging]) -> ListPage[ItemOut]:
    """In queue order, filtered as on the page of the queue."""
    user = authorize(request)
    found = lists.items_from(find(ReviewQueue.objects.all(), pk=pk), read_filters(asked), user)
    return page(request, found.require_sense(), ["position"], paging, ItemOut.from_orm)


@router.post("/queues/{pk}/items", response={201: ItemOut}, summary="Add a run to review")
def put_run_up(request: HttpRequest, pk: Id, wanted: ReviewedRun) -> Status[ItemOut]:
    """Appends an ended run of yours to an open queue. Admins can add any run."""
    user = authorize(request, MAKES_QUEUES, TokenScope.WRITE)
    run = find(visible_to(Run.objects.all()), pk=wanted.run)
    find(ReviewQueue.objects.all(), pk=pk)
    return Status(201, ItemOut.from_orm(actions.add_run(Actor.behind(request, user), run, pk)))


# --- one's own review ---


@router.post("/queues/{pk}/next", response=ItemOut, summary="Reserve the next item")
def reserve_next_item(request: HttpRequest, pk: Id) -> ItemOut:
    """The item is yours until 20 minutes after your last save. Then another reviewer may get it."""
    user = authorize(request, Role.REVIEWER, TokenScope.WRITE)
    review = actions.take_next(Actor.behind(request, user), find(ReviewQueue.objects.all(), pk=pk))
    if review is None:
        raise StateConflict("No item waits for you in this queue at the moment.")
    return ItemOut.from_orm(review.item)


@router.post("/queues/{pk}/undo", response=ReviewOut, summary="Undo your last submission")
def undo_review(request: HttpRequest, pk: Id) -> ReviewOut:
    """Turns your last submission here back into a draft, within ten minutes and until you see other reviews."""
    user = authorize(request, Role.REVIEWER, TokenScope.WRITE)
    return ReviewOut.from_orm(actions.undo(Actor.behind(request, user), find(ReviewQueue.objects.all(), pk=pk)))


@router.post("/queues/{pk}/items/{number}/reserve", response=ReviewOut, summary="Reserve an item")
def reserve_item(request: HttpRequest, pk: Id, number: Number) -> ReviewOut:
    """Reserves this item. If it is yours already, its 20 minutes start anew."""
    user = authorize(request, Role.REVIEWER, TokenScope.WRITE)
    return ReviewOut.from_orm(actions.take_item(Actor.behind(request, user), _item_at(pk, number)))


@router.get("/queues/{pk}/items/{number}/review", response=ReviewOut, summary="Read your review")
def read_review(request: HttpRequest, pk: Id, number: Number) -> ReviewOut:
    """Returns your own review, draft or submitted."""
    user = authorize(request)
    return ReviewOut.from_orm(_find_review(_item_at(pk, number), user.pk))


@router.put("/queues/{pk}/items/{number}/review", response=ReviewOut, summary="Save your draft")
def save_review(request: HttpRequest, pk: Id, number: Number, written: ReviewIn, response: HttpResponse) -> ReviewOut:
    """Requires the ETag of your review in If-Match, so that newer text is not overwritten. Returns the new ETag, for
    the next save or the submission."""
    user = authorize(request, Role.REVIEWER, TokenScope.WRITE)
    review = _find_review(_item_at(pk, number), user.pk)
    must_match(request, ReviewOut.from_orm(review))
    fields = rubric.opinion_from(written.model_dump())
    saved = ReviewOut.from_orm(actions.save_draft(Actor.behind(request, user), review.item_id, review.version, fields))
    response["ETag"] = tag_of(request, saved)
    return saved


@router.post("/queues/{pk}/items/{number}/review/submit", response=ReviewOut, summary="Submit your review")
def submit_review(request: HttpRequest, pk: Id, number: Number, submission: Submission) -> ReviewOut:
    """Submits the saved draft. Requires its ETag in If-Match."""
    user = authorize(request, Role.REVIEWER, TokenScope.WRITE)
    review = _find_review(_item_at(pk, number), user.pk)
    must_match(request, ReviewOut.from_orm(review))
    by, fields, seq = Actor.behind(request, user), rubric.opinion_of(review), submission.run_seq
    row = actions.submit(by, review.item_id, review.version, fields, seq, additional=submission.additional)
    return ReviewOut.from_orm(row)


@router.post("/queues/{pk}/items/{number}/review/decline", response=ReviewOut, summary="Decline an item")
def decline_review(request: HttpRequest, pk: Id, number: Number, declination: Declination) -> ReviewOut:
    """Leaves an item that you have reserved to another reviewer. The owner of the queue can read the reason."""
    user = authorize(request, Role.REVIEWER, TokenScope.WRITE)
    return ReviewOut.from_orm(actions.decline(Actor.behind(request, user), _item_at(pk, number).pk, declination.reason))


def _find_review(item: ReviewItem, user: int) -> Review:
    row = item.reviews.select_related("reviewer").filter(reviewer=user).first()
    if row is None:
        raise Refusal("missing", "You have not taken this item.")
    return row


# --- what others say ---


@router.get("/queues/{pk}/items/{number}/reviews", response=list[ReviewOut], summary="List the reviews of an item")
def list_reviews(request: HttpRequest, pk: Id, number: Number) -> list[ReviewOut]:
    """Lists the reviews that you may see: in a blind queue, none until yours is submitted or the item is complete."""
    user = authorize(request)
    item = _item_at(pk, number)
    rows = blindness.list_visible_reviews(user).filter(item=item).select_related("reviewer").order_by("pk")
    blindness.record_disclosure(user, [item.pk])
    return [ReviewOut.from_orm(row) for row in rows]


@router.get(
    "/queues/{pk}/items/{number}/final-verdicts", response=list[FinalOut], summary="List the final verdicts of an item"
)
def list_final_verdicts(request: HttpRequest, pk: Id, number: Number) -> list[FinalOut]:
    """Newest first; the newest one counts. Empty while you must still review the run blind."""
    user = authorize(request)
    item = _item_at(pk, number)
    hidden = Run.objects.filter(blindness.has_hidden_verdict(user), pk=item.run_id).exists()
    rows = item.adjudications.none() if hidden else item.adjudications.select_related("adjudicator")
    return [FinalOut.from_orm(row) for row in rows]


@router.post("/queues/{pk}/items/{number}/final-verdicts", response={201: FinalOut}, summary="Give the final verdict")
def give_final_verdict(request: HttpRequest, pk: Id, number: Number, final: FinalIn) -> Status[FinalOut]:
    """The item must be complete or its queue closed. Requires an admin, or a reviewer who neither reviewed the item
    nor owns the run. A later final verdict replaces it."""
    user = authorize(request, Role.REVIEWER, TokenScope.WRITE)
    by, item = Actor.behind(request, user), _item_at(pk, number)
    row = actions.settle_item(by, item.pk, final.verdict, final.corrected_label, final.reason)
    return Status(201, FinalOut.from_orm(row))


# --- agreement ---


@router.get("/queues/{pk}/agreement", response=AgreementOut, summary="Read the agreement of a queue")
def read_agreement(request: HttpRequest, pk: Id) -> AgreementOut:
    """Alpha and Fleiss' kappa per criterion, and Cohen's kappa per pair of reviewers. In an open blind queue,
    available once you have submitted all your reviews."""
    user = authorize(request)
    queue = find(ReviewQueue.objects.all(), pk=pk)
    if not blindness.may_see_agreement(user, queue):
        raise PermissionDenied("This queue is blind, and figures reveal other reviews. Submit your reviews first.")
    blindness.record_disclosure(user, queue.items.values_list("pk", flat=True))
    rows = [MeasureOut.from_orm(row) for row in agreement.measures_of(queue, user)]
    return AgreementOut(measures=rows, left_out=agreement.count_left_out(user, queue))
