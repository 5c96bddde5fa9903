"""Review, before and after the reviews: queues are made and closed, runs put up, and final verdicts given."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Field, Schema, Status

from experiments.api.entry import allow
from experiments.api.fields import NO_NUL, Body, Id, Number, RowNumber, find
from experiments.api.once import once
from experiments.api.problems import FieldError, Refusal
from experiments.core import audit, blindness, notify
from experiments.core.audit import Verb
from experiments.core.review_rights import MAKES_QUEUES
from experiments.models import Adjudication, ReviewQueue, Run
from experiments.models.api_token import Scope
from experiments.models.member import Role
from experiments.models.review import LABEL_CHARS
from experiments.reviews import adjudication, queue_form, queues
from experiments.reviews.adjudication import REASON_CHARS
from experiments.reviews.api import ITEMS, QUEUES, ItemOut, QueueOut, item_out, queue_out, router

Name = Annotated[str, Field(min_length=1, max_length=80, pattern=NO_NUL)]


class QueueIn(Body):
    """A new queue of runs that have ended: yours, an admin's any."""

    name: Name
    runs: list[RowNumber] = Field(min_length=1, max_length=1_000)
    note: str = Field("", max_length=queue_form.NOTE_CHARS, pattern=NO_NUL)
    reviewers_per_item: int = Field(1, ge=1, le=queue_form.MOST_REVIEWERS)
    blind: bool = True
    reviewers: list[str] = Field([], max_length=100, description="user names; nobody: whoever may review")


class PutUp(Body):
    run: RowNumber


class FinalIn(Body):
    """What is to become of the run, and why."""

    verdict: Literal["accept", "revise", "reject"]
    corrected_label: str = Field("", max_length=LABEL_CHARS, pattern=NO_NUL)
    reason: str = Field(min_length=1, max_length=REASON_CHARS, pattern=NO_NUL)


class FinalOut(Schema):
    """A final verdict; the newest of an item stands."""

    adjudicator: str
    verdict: str
    corrected_label: str
    reason: str
    created: datetime


@router.post("/queues", response={201: QueueOut}, summary="Make a queue")
def create_queue(request: HttpRequest, plan: QueueIn, response: HttpResponse) -> Status[object]:
    """Who is named is told. Runs that have not ended are refused, and those that you may not put up."""
    user = allow(request, MAKES_QUEUES, Scope.WRITE)
    return Status(201, once(request, response, user, lambda: made(request, user, plan)))


@transaction.atomic
def made(request: HttpRequest, user: User, plan: QueueIn) -> tuple[QueueOut, str]:
    rows = queues.reviewable(queues.allowed(Run.objects.filter(pk__in=plan.runs), user), only_ended=True)
    left = set(plan.runs) - set(rows.values_list("pk", flat=True))
    if left:
        words = f"Not to be queued by you, or not ended, or not there: {', '.join(map(str, sorted(left)))}."
        raise Refusal("invalid", words, [FieldError(field="runs", message=words)])
    people = list(queue_form.reviewers().filter(username__in=plan.reviewers))
    unknown = set(plan.reviewers) - {each.username for each in people}
    if unknown or (people and len(people) < plan.reviewers_per_item):
        words = f"Nobody who may review is called so: {', '.join(sorted(unknown))}." if unknown else "Name more people."
        raise Refusal("invalid", words, [FieldError(field="reviewers", message=words)])
    known = queues.Plan(plan.name, plan.note, "", plan.reviewers_per_item, plan.blind, people)
    queue = queues.make(user, rows.order_by("pk"), known)
    audit.record(request, Verb.QUEUE_CREATED, queue, items=queue.items.count())
    notify.tell(f"queue.{queue.pk}")
    return queue_out(find(queues.with_items(QUEUES.all()), pk=queue.pk)), reverse("api:read_queue", args=[queue.pk])


@router.post("/queues/{pk}/items", response={201: ItemOut}, summary="Put a run up for review")
def put_run_up(request: HttpRequest, pk: Id, wanted: PutUp) -> Status[ItemOut]:
    """As the last item of an open queue: a run of yours that has ended; an admin's any."""
    user = allow(request, MAKES_QUEUES, Scope.WRITE)
    run = find(Run.objects.all(), pk=wanted.run)
    find(ReviewQueue.objects.all(), pk=pk)
    try:
        with transaction.atomic():
            item = queues.put_up(user, run, pk)
            audit.record(request, Verb.RUN_PUT_UP, run, queue=pk)
    except queues.Refused as refused:
        raise Refusal("conflict", str(refused)) from None
    notify.tell(f"queue.{pk}")
    return Status(201, item_out(item))


@router.post("/queues/{pk}/close", response=QueueOut, summary="Close a queue")
def close_queue(request: HttpRequest, pk: Id) -> QueueOut:
    """For good: its opinions are open to the team then. Yours, an admin's any."""
    user = allow(request, MAKES_QUEUES, Scope.WRITE)
    queue = find(ReviewQueue.objects.all(), pk=pk)
    if queue.closed is None and not queues.may_close(user, queue):
        raise PermissionDenied("A queue is closed by an admin, or by who made it.")
    with transaction.atomic():
        if queues.close(queue):
            audit.record(request, Verb.QUEUE_CLOSED, queue)
            notify.tell(f"queue.{pk}")
    return queue_out(find(queues.with_items(QUEUES.all()), pk=pk))


@router.get(
    "/queues/{pk}/items/{number}/final-verdicts", response=list[FinalOut], summary="List the final verdicts of an item"
)
def list_final_verdicts(request: HttpRequest, pk: Id, number: Number) -> list[FinalOut]:
    """The newest first, which stands; none while you are to review the run unseen."""
    user = allow(request)
    item = find(ITEMS.all(), queue=pk, position=number)
    hidden = Run.objects.filter(blindness.has_hidden_verdict(user), pk=item.run_id).exists()
    rows = item.adjudications.none() if hidden else item.adjudications.select_related("adjudicator")
    return [final_out(row) for row in rows]


@router.post("/queues/{pk}/items/{number}/final-verdicts", response={201: FinalOut}, summary="Give the final verdict")
def give_final_verdict(request: HttpRequest, pk: Id, number: Number, final: FinalIn) -> Status[FinalOut]:
    """On an item that is complete, or whose queue is closed: by an admin, or a reviewer who is neither among its
    opinions nor asked for the run. A later one stands in its place."""
    user = allow(request, Role.REVIEWER, Scope.WRITE)
    item = find(ITEMS.all(), queue=pk, position=number)
    try:
        with transaction.atomic():
            row = adjudication.adjudicate(item.pk, user, final.verdict, final.corrected_label, final.reason)
            audit.record(request, Verb.REVIEW_ADJUDICATED, item, final_verdict=row.pk)
    except adjudication.Refused as refused:
        raise Refusal("invalid" if refused.is_about_words else "conflict", str(refused)) from None
    notify.tell(f"queue.{pk}")
    return Status(201, final_out(row))


def final_out(row: Adjudication) -> FinalOut:
    names = ("verdict", "corrected_label", "reason", "created")
    return FinalOut(adjudicator=row.adjudicator.get_username(), **{name: getattr(row, name) for name in names})
