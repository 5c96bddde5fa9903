"""Focus mode: the evidence of one item beside the rubric, and the actions of a reviewer.

Actions: take, hold, save, submit, decline, undo, final verdict. Scripts get JSON, forms get a page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST, require_safe

from experiments.core import access, blindness
from experiments.core.actors import Actor
from experiments.core.blindness import queues_of
from experiments.core.errors import ActionRefused, InvalidInput, OutOfDate
from experiments.core.params import parse_key
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display.form_fields import add_refusal
from experiments.models import Review, ReviewItem, ReviewQueue, ReviewState, ReviewVerdict, Role
from experiments.models.review import LABEL_CHARS
from experiments.reviews import actions, evidence, lists, reservation, rubric

BEFORE, AFTER = 6, 14
"""Items listed before and after the current one."""


class FinalVerdict(forms.Form):
    """The action checks what it holds, for the page and the API alike."""

    verdict = forms.CharField(required=False, widget=forms.RadioSelect)
    corrected_label = forms.CharField(
        help_text="if it should be another", required=False, widget=forms.TextInput({"maxlength": LABEL_CHARS})
    )
    reason = forms.CharField(
        label="Why",
        help_text="the author and the reviewers read it",
        required=False,
        widget=forms.Textarea({"rows": 3, "maxlength": actions.FINAL_CHARS, "required": True}),
    )


class DeclineItem(forms.Form):
    """Why a reviewer leaves an item to another."""

    reason = forms.CharField(
        label="Why?",
        help_text="The run goes to another reviewer; the owner of the queue reads your reason.",
        required=False,
        widget=forms.TextInput(
            {"maxlength": actions.DECLINE_CHARS, "required": True, "placeholder": "I made this run myself"}
        ),
    )


@require_GET
def next_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Reserve the next item for this person and show it."""
    actor = Actor.of(request, Role.REVIEWER)
    row = get_object_or_404(ReviewQueue, pk=pk)
    # A GET that reserves: reviewers keep the address as a link, and a second request gets the same item.
    review = actions.take_next(actor, row)
    if review is None:
        messages.info(request, _nothing_left(row, actor.person))
        return redirect(row)
    return redirect(review.item)


def _nothing_left(queue: ReviewQueue, user: User) -> str:
    if queue.closed:
        return "This queue is closed."
    if not queues_of(user).filter(pk=queue.pk).exists():
        return "This queue is for reviewers whom it names, and you are not among them."
    if queue.items.filter(complete=False).exists():
        return (
            "Nothing waits for you here at the moment: other reviewers hold what is left, or you have done your part."
        )
    return "Every item of this queue has been reviewed."


@require_safe
def item(request: HttpRequest, pk: int, position: int) -> HttpResponse:
    """Show the evidence, and the rubric if this person has reserved the item. Scripts get these two parts alone."""
    user = access.require(request)
    row = _item_at(pk, position)
    if request.headers.get("X-Part") == "focus":
        return render(request, "reviews/focus.html", _build_item_context(row, user))
    return render(request, "reviews/item.html", _page(row, user))


def _item_at(pk: int, position: int) -> ReviewItem:
    return get_object_or_404(
        visible_to(ReviewItem.objects.select_related("queue", "run__owner")), queue_id=pk, position=position
    )


def _render_refused(
    request: HttpRequest, item: ReviewItem, user: User, status: int, typed: Mapping[str, Any] | None = None, **more: Any
) -> HttpResponse:
    """Render the page with what was typed, and what else was refused, by its name in the template."""
    return render(request, "reviews/item.html", _page(item, user, typed) | more, status=status)


def _page(item: ReviewItem, user: User, typed: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the context of the full page."""
    return _build_item_context(item, user, typed) | _read_side(item.queue, item.position, user)


def _build_item_context(item: ReviewItem, user: User, typed: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the context of evidence and rubric. The rubric shows what was `typed`, else what is stored."""
    row = lists.item_rows([item], user)[0]
    lists.record_disclosure([row], user)
    mine, queue = row.mine, item.queue
    # The last event that the reviewer has seen; without a review, the last one when the run was queued
    since = mine.seq if mine else item.seen_seq
    kept = rubric.opinion_of(mine) if mine else {}
    filled = kept if typed is None else {name: typed.get(name, "") for name in rubric.FIELDS}
    # A final verdict would anchor a reviewer who is still writing.
    readable = bool(row.opinions) and not row.hidden and not (mine and mine.state == ReviewState.DRAFT)
    return {
        "item": item,
        "queue": queue,
        "run": item.run,
        "row": row,
        "mine": mine,
        "state": _get_writing_state(mine, item, user),
        "breadcrumbs": [
            ("Review", reverse("review")),
            (queue.name, queue.get_absolute_url()),
            (f"Item {item.position}", item.get_absolute_url()),
        ],
        "lines": [(line, str(filled.get(line.name) or "")) for line in rubric.LINES],
        "filled": filled,
        "texts": rubric.OpinionTexts(initial=filled, auto_id="rubric_%s"),
        "final_form": FinalVerdict(auto_id="final_%s"),
        "decline_form": DeclineItem(auto_id="decline_%s"),
        "own": rubric.list_values(mine) if mine else [],
        "scores": [str(score) for score in rubric.SCORES],
        "verdicts": [(*choice, key) for choice, key in zip(ReviewVerdict.choices, "avr", strict=True)],
        "news": evidence.list_news(item.run, since),
        "new_count": max(0, item.run.last_seq - since),
        "finals": list(item.adjudications.select_related("adjudicator")) if readable else [],
        "may_settle": readable and not actions.explain_no_verdict(user, item),
        **evidence.read_evidence(item.run, SystemNameMasker(user), blind=blindness.is_blind(user, item.run_id)),
    }


def _get_writing_state(mine: Review | None, item: ReviewItem, user: User) -> str:
    """Return the state of the rubric for this person: "write", "offer" (they can take it), "lapsed", "closed",
    "done", "declined" or "read"."""
    if mine and mine.state != ReviewState.DRAFT:
        return "done" if mine.state == ReviewState.SUBMITTED else "declined"
    if not queues_of(user).filter(pk=item.queue_id).exists():
        return "closed" if mine else "read"
    if mine:
        return "write" if mine.holds() or reservation.has_room(item, user) else "lapsed"
    return "offer" if not item.complete else "read"


def _read_side(queue: ReviewQueue, position: int, user: User) -> dict[str, Any]:
    """Return the context of the column that lists the queue."""
    counted = lists.with_items(ReviewQueue.objects.filter(pk=queue.pk)).get()
    near = list(lists.items(queue).filter(position__range=(position - BEFORE, position + AFTER)))
    mine = Review.objects.filter(item__queue=queue, reviewer=user, state=ReviewState.SUBMITTED)
    return {
        "rows": lists.item_rows(near, user),
        "before": near[0].position - 1 if near else 0,
        "after": counted.total - (near[-1].position if near else 0),
        "submissions": mine.count(),
        "counted": counted,
        "position": position,
        "undoable": actions.find_undoable(queue, user),
    }


@require_safe
def line(request: HttpRequest, pk: int, position: int) -> HttpResponse:
    """Show the column that lists the queue around one item."""
    user = access.require(request)
    row = get_object_or_404(ReviewQueue, pk=pk)
    return render(request, "reviews/line.html", {"queue": row} | _read_side(row, position, user))


@require_safe
def preload_next(request: HttpRequest, pk: int, position: int) -> HttpResponse:
    """Return the item that would follow, so that a page can load it in advance. Nothing is reserved."""
    user = access.require(request, Role.REVIEWER)
    here = _item_at(pk, position)
    # The current item is still a draft, so it comes first in the list.
    key = next((key for key in reservation.list_next(here.queue, user) if key != here.pk), None)
    if key is None:
        return HttpResponse(status=204)
    row = ReviewItem.objects.select_related("queue", "run__owner").get(pk=key)
    context = _build_item_context(row, user)
    # By the time it is shown, submitting the current item has reserved this one
    context["state"] = "write" if context["state"] in {"offer", "write", "lapsed"} else context["state"]
    response = render(request, "reviews/focus.html", context)
    response.headers["X-Address"] = reverse("review-item", args=[pk, row.position])
    return response


# --- what a reviewer sends ------------------------------------------------------------------------------------


@require_POST
def take(request: HttpRequest, pk: int, position: int) -> HttpResponse:
    """Reserve this item."""
    actor = Actor.of(request, Role.REVIEWER)
    row = _item_at(pk, position)
    try:
        actions.take_item(actor, row)
    except ActionRefused as error:
        messages.warning(request, str(error))
    return redirect(row)


@require_POST
def keep_reservation(request: HttpRequest, pk: int, position: int) -> HttpResponse:
    """Renew the reservation of an open page. Returns the state of the run and of the reservation."""
    actor = Actor.of(request, Role.REVIEWER)
    row = _item_at(pk, position)
    review = actions.hold_item(actor, row)
    held = review is not None and review.holds()
    return JsonResponse({"held": held, "seq": row.run.last_seq, "state": review.state if review else ""})


@require_POST
def save(request: HttpRequest, pk: int, position: int) -> HttpResponse:
    """Store a draft."""
    actor = Actor.of(request, Role.REVIEWER)
    row = _item_at(pk, position)
    try:
        version = parse_key(request.POST.get("version"))
        review = actions.save_draft(actor, row.pk, version, rubric.opinion_from(request.POST))
    except ActionRefused as error:
        return _answer_refusal(request, row, actor.person, error)
    lapsed = review.slot is None and row.queue.closed is None
    words = "Your reservation lapsed and another reviewer has the place. The draft is kept." if lapsed else ""
    if _wants_json(request):
        return JsonResponse(_draft_json(review) | {"problem": "", "words": words})
    messages.success(request, words or "Draft saved.")
    return redirect(row)


@require_POST
def submit(request: HttpRequest, pk: int, position: int) -> HttpResponse:
    """Submit, and reserve the next item at the same time."""
    actor = Actor.of(request, Role.REVIEWER)
    row, sent = _item_at(pk, position), request.POST
    version, seq, wanted = (parse_key(sent.get(name)) for name in ("version", "seq", "next"))
    additional = sent.get("additional") == "yes"
    try:
        review = actions.submit(actor, row.pk, version, rubric.opinion_from(sent), seq, additional=additional)
    except ActionRefused as error:
        return _answer_refusal(request, row, actor.person, error)
    following = actions.take_next(actor, row.queue, wanted)
    if _wants_json(request):
        after = {"position": following.item.position, "version": following.version} if following else None
        words = "" if following else _nothing_left(row.queue, actor.person)
        answer = {"problem": "", "next": after, "words": words, "queue": row.queue.get_absolute_url()}
        return JsonResponse(_draft_json(review) | answer)
    messages.success(request, f"Submitted item {position}.")
    return redirect(following.item if following else row.queue)


@require_POST
def decline(request: HttpRequest, pk: int, position: int) -> HttpResponse:
    """Leave the item to another reviewer."""
    actor = Actor.of(request, Role.REVIEWER)
    row = _item_at(pk, position)
    try:
        actions.decline(actor, row.pk, request.POST.get("reason", ""))
    except InvalidInput as error:
        form = DeclineItem(request.POST, auto_id="decline_%s")
        add_refusal(form, error)
        return _render_refused(request, row, actor.person, 422, decline_form=form)
    except ActionRefused as error:
        return _answer_refusal(request, row, actor.person, error)
    following = actions.take_next(actor, row.queue)
    messages.success(request, f"Declined item {position}: it goes to another reviewer.")
    return redirect(following.item if following else row.queue)


@require_POST
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    """Undo this person's last submission in the queue."""
    actor = Actor.of(request, Role.REVIEWER)
    row = get_object_or_404(ReviewQueue, pk=pk)
    try:
        review = actions.undo(actor, row)
    except ActionRefused as error:
        messages.warning(request, str(error))
        return redirect(row)
    messages.success(request, "Taken back: it is a draft again.")
    return redirect(review.item)


@require_POST
def settle_item(request: HttpRequest, pk: int, position: int) -> HttpResponse:
    """Give the final verdict on an item."""
    actor = Actor.of(request, Role.REVIEWER)
    row = _item_at(pk, position)
    form = FinalVerdict(request.POST, auto_id="final_%s")
    try:
        actions.settle_item(actor, row.pk, *(form.data.get(name, "") for name in form.fields))
    except InvalidInput as error:
        add_refusal(form, error)
        return _render_refused(request, row, actor.person, 422, final_form=form)
    except ActionRefused as error:
        messages.warning(request, str(error))
        return redirect(row)
    messages.success(request, f"The final verdict on item {position} stands. Its author is told.")
    return redirect(row)


# --- answers --------------------------------------------------------------------------------------------------


def _wants_json(request: HttpRequest) -> bool:
    return request.headers.get("Accept", "") == "application/json"


def _answer_refusal(request: HttpRequest, item: ReviewItem, user: User, error: ActionRefused) -> HttpResponse:
    """Return why the action was refused, as JSON or as a page, with the stored draft.

    If the form was not stored, it is shown again beside the stored draft, so that the reviewer can choose.
    """
    unreadable = isinstance(error, rubric.UnreadableOpinion)
    # What cannot be read was sent by no page of ours: there is nothing to merge.
    kept = None if unreadable else item.reviews.filter(reviewer=user).first()
    if _wants_json(request):
        body = _draft_json(kept) if kept else {}
        # What the page's script goes by: "run", "taken", "over", "version" (changed elsewhere), or "invalid"
        problem = "version" if isinstance(error, OutOfDate) else getattr(error, "reason", "invalid")
        body |= {"problem": problem, "words": str(error)}
        if problem == "run":
            news = evidence.list_news(item.run, parse_key(request.POST.get("seq")))
            body |= {"seq": item.run.last_seq, "news": news}
        return JsonResponse(body, status=422 if isinstance(error, InvalidInput) else 409)
    messages.warning(request, str(error))
    if unreadable or isinstance(error, OutOfDate):
        elsewhere = rubric.list_values(kept) if kept else None
        texts = rubric.OpinionTexts(request.POST, auto_id="rubric_%s")
        return _render_refused(request, item, user, 409, request.POST, elsewhere=elsewhere, texts=texts)
    return redirect(item)


def _draft_json(review: Review) -> dict[str, Any]:
    """Return a stored draft for a script."""
    return {
        "version": review.version,
        "saved": actions.clock(review.saved),
        "held": review.holds(),
        "fields": rubric.opinion_of(review),
    }
