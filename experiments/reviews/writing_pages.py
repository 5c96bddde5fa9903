"""What a reviewer sends: take, hold, save, submit, decline, undo. Scripts are answered in JSON, forms by a page."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from experiments.core import access, audit, notify
from experiments.core.audit import Verb
from experiments.core.params import parse_number
from experiments.models import Review, ReviewItem, ReviewQueue
from experiments.models.member import Role
from experiments.models.review import State
from experiments.reviews import evidence, reservation, rubric, writing
from experiments.reviews.pages import item_at, nothing_left, page_context
from experiments.reviews.writing import Outcome


@require_POST
def take(request: HttpRequest, pk: int, position: int) -> HttpResponse:
    """Reserve this very item."""
    user = access.require(request, Role.REVIEWER)
    row = item_at(pk, position)
    review = reservation.claim(row.pk, user)
    if review is None or (review.state == State.DRAFT and not review.holds()):
        messages.warning(request, "Other reviewers hold this item at the moment, or it is not for you.")
    notify.tell(f"queue.{pk}")
    return redirect(row)


@require_POST
def hold(request: HttpRequest, pk: int, position: int) -> HttpResponse:
    """A sign of life from an open page: the reservation is renewed. Tells how the run and the place stand."""
    user = access.require(request, Role.REVIEWER)
    row = item_at(pk, position)
    begun = row.reviews.filter(reviewer=user).exists()
    review = reservation.claim(row.pk, user) if begun else None
    held = review is not None and review.holds()
    return JsonResponse({"held": held, "seq": row.run.last_seq, "state": review.state if review else ""})


@require_POST
def save(request: HttpRequest, pk: int, position: int) -> HttpResponse:
    """Keep a draft."""
    user = access.require(request, Role.REVIEWER)
    row = item_at(pk, position)
    try:
        outcome = writing.save(row.pk, user, number(request, "version"), rubric.opinion_from(request.POST))
    except rubric.Unreadable as error:
        outcome = Outcome(None, "unreadable", str(error))
    return answer(request, row, outcome, "Draft saved.")


@require_POST
def submit(request: HttpRequest, pk: int, position: int) -> HttpResponse:
    """Submit, and go on with the next item, which is reserved in the same moment."""
    user = access.require(request, Role.REVIEWER)
    row = item_at(pk, position)
    outcome = submitted(request, row, user)
    if not outcome.done:
        return answer(request, row, outcome)
    following = reservation.take(row.queue, user, number(request, "next"))
    notify.tell(f"queue.{pk}")
    if asks_json(request):
        after = {"position": following.item.position, "version": following.version} if following else None
        words = "" if following else nothing_left(row.queue, user)
        return JsonResponse({**told(outcome), "next": after, "words": words, "queue": row.queue.get_absolute_url()})
    messages.success(request, f"Submitted item {position}.")
    return redirect(following.item if following else row.queue)


def submitted(request: HttpRequest, item: ReviewItem, user: User) -> Outcome:
    sent = request.POST
    try:
        fields = rubric.opinion_from(sent)
    except rubric.Unreadable as error:
        return Outcome(None, "unreadable", str(error))
    with transaction.atomic():
        version, seq = number(request, "version"), number(request, "seq")
        outcome = writing.submit(item.pk, user, version, fields, seq, additional=sent.get("additional") == "yes")
        if outcome.done and outcome.review:
            audit.record(request, Verb.REVIEW_SUBMITTED, outcome.review, additional=outcome.review.slot is None)
    return outcome


@require_POST
def decline(request: HttpRequest, pk: int, position: int) -> HttpResponse:
    """Leave the item to another reviewer."""
    user = access.require(request, Role.REVIEWER)
    row = item_at(pk, position)
    with transaction.atomic():
        outcome = writing.decline(row.pk, user, request.POST.get("reason", ""))
        if outcome.done and outcome.review:
            audit.record(request, Verb.REVIEW_DECLINED, outcome.review, reason=outcome.review.reason)
            notify.tell(f"queue.{pk}")
    if not outcome.done:
        return answer(request, row, outcome)
    following = reservation.take(row.queue, user)
    messages.success(request, f"Declined item {position}: it goes to another reviewer.")
    return redirect(following.item if following else row.queue)


@require_POST
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    """Take back this person's last submission in the queue."""
    user = access.require(request, Role.REVIEWER)
    row = get_object_or_404(ReviewQueue, pk=pk)
    with transaction.atomic():
        outcome = writing.undo(row, user)
        if outcome.done and outcome.review:
            audit.record(request, Verb.REVIEW_WITHDRAWN, outcome.review)
            notify.tell(f"queue.{pk}")
    if outcome.review is None or not outcome.done:
        messages.warning(request, outcome.words)
        return redirect(row)
    messages.success(request, "Taken back: it is a draft again.")
    return redirect(outcome.review.item)


# --- answers ---------------------------------------------------------------------------------------------


def number(request: HttpRequest, name: str) -> int:
    """A whole number of the form; 0 if it is missing or none."""
    return parse_number(request.POST.get(name)) or 0


def asks_json(request: HttpRequest) -> bool:
    return request.headers.get("Accept", "") == "application/json"


def answer(request: HttpRequest, item: ReviewItem, outcome: Outcome, done: str = "") -> HttpResponse:
    """What came of it, in the language of who asks."""
    if asks_json(request):
        body = told(outcome)
        if outcome.problem == "run":
            body |= {"seq": item.run.last_seq, "news": list(evidence.news(item.run, number(request, "seq")))}
        status = 200 if outcome.done else 422 if outcome.problem in {"incomplete", "unreadable"} else 409
        return JsonResponse(body, status=status)
    if outcome.problem in {"version", "unreadable"}:
        return typed_again(request, item, outcome)
    if outcome.done:
        messages.success(request, outcome.words or done)
    else:
        messages.warning(request, outcome.words)
    return redirect(item)


def typed_again(request: HttpRequest, item: ReviewItem, outcome: Outcome) -> HttpResponse:
    """The page with what was typed in it, beside what is kept: the reviewer chooses."""
    assert isinstance(request.user, User)
    context = page_context(item, request.user, request.POST)
    messages.warning(request, outcome.words)
    elsewhere = rubric.in_words(outcome.review) if outcome.review else None
    return render(request, "reviews/item.html", context | {"elsewhere": elsewhere}, status=409)


def told(outcome: Outcome) -> dict[str, Any]:
    """An outcome as a script reads it, with the draft as it is kept."""
    review: Review | None = outcome.review
    known: dict[str, Any] = {"problem": outcome.problem, "words": outcome.words}
    if review is not None:
        known |= {"version": review.version, "saved": writing.clock(review.saved), "held": review.holds()}
        known |= {"fields": rubric.opinion_of(review)}
    return known
