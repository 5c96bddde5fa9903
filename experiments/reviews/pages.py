"""Review: the queues, one queue with its items and opinions, and focus mode on one item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST, require_safe

from experiments.core import access, audit, notify
from experiments.core.audit import Verb
from experiments.core.review_rights import MAKES_QUEUES, queues_of
from experiments.core.system_names import Names
from experiments.display import verdicts
from experiments.models import Review, ReviewItem, ReviewQueue
from experiments.models.member import Role
from experiments.models.review import State, Verdict
from experiments.reviews import adjudication, evidence, overview, queues, reservation, rubric, writing
from experiments.reviews.queue_form import QueueForm
from experiments.runs import lists
from workers import registry

PER_PAGE = 25
QUEUES = 100
"""Queues that the list shows, the newest."""
LONGEST = 20_000
"""Characters of a filter: a thousand ticked runs fit."""


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """All queues: how far each is, and whether something waits there for this person."""
    user = access.require(request)
    shown = queues.with_progress(ReviewQueue.objects.select_related("owner")[:QUEUES])
    mine = dict.fromkeys(queues_of(user).values_list("pk", flat=True))
    drafts = Review.objects.filter(reviewer=user, state=State.DRAFT, item__queue__closed=None, version__gt=1)
    context = {
        "open": [queue for queue in shown if queue.closed is None],
        "closed": [queue for queue in shown if queue.closed],
        "mine": mine,
        "drafts": drafts.select_related("item__queue", "item__run").order_by("-saved")[:20],
        "may_make": (access.role_of(user) or Role.VIEWER) >= MAKES_QUEUES,
    }
    return render(request, "reviews/list.html" if request.headers.get("HX-Request") else "reviews/index.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """The form of a new queue; its runs are those that the address chooses, as on the page Runs: an admin's of all
    runs, anybody else's of their own."""
    user = access.require(request, MAKES_QUEUES)
    query = QueryDict(request.META.get("QUERY_STRING", "")[:LONGEST])
    found = lists.runs_from(query.dict(), user)
    sent = request.method == "POST"
    form = QueueForm(request.POST) if sent else QueueForm(initial={"name": named(found)})
    theirs = queues.allowed(found.runs, user)
    runs = queues.reviewable(theirs, not sent or "only_ended" in request.POST)
    counts = {"all": theirs.count(), "ended": queues.reviewable(theirs, only_ended=True).count()}
    counts["others"] = found.runs.count() - counts["all"]
    if sent and form.is_valid() and (problem := refusal(runs.count())):
        form.add_error(None, problem)
    if sent and form.is_valid():
        queue = made(request, user, form, runs, query.urlencode())
        return redirect(queue)
    context = {"form": form, "counts": counts, "found": found, "query": query.urlencode(), "most": queues.MOST}
    return render(request, "reviews/new.html", context, status=422 if sent else 200)


def named(found: lists.Filtered) -> str:
    """A name for what the filters choose; not by its system where that is what reviewers are not to know."""
    telling = found.runs.filter(system_kind=registry.BLINDED_KIND).exists()
    left_out = {"run", "model", "layer", "unit"} if telling else {"run"}
    words = [value for name, value in found.values.items() if name not in left_out]
    return ", ".join(words)[:80]


def refusal(count: int) -> str:
    if not count:
        return "No run is chosen: a queue needs at least one."
    if count > queues.MOST:
        return f"{count:,} runs are chosen, and a queue holds at most {queues.MOST:,}. Narrow the list down first."
    return ""


@transaction.atomic
def made(request: HttpRequest, user: User, form: QueueForm, runs: Any, query: str) -> ReviewQueue:
    queue = queues.make(user, runs, form.plan(query))
    audit.record(request, Verb.QUEUE_CREATED, queue, items=queue.items.count(), filters=query)
    notify.tell(f"queue.{queue.pk}")
    return queue


@require_safe
def queue(request: HttpRequest, pk: int) -> HttpResponse:
    """One queue as a table; htmx is sent the table alone."""
    user = access.require(request)
    row = next(iter(queues.with_progress(ReviewQueue.objects.filter(pk=pk).select_related("owner"))), None)
    if row is None:
        raise Http404("There is no such queue.")
    show = request.GET.get("show", "") if request.GET.get("show") in overview.SHOWS else ""
    items = overview.items(row, show).select_related("run", "queue")
    page = Paginator(items, PER_PAGE).get_page(request.GET.get("page"))
    rows = overview.rows(list(page), user)
    overview.note_shown(rows, user)
    context = {
        "queue": row,
        "crumbs": [("Review", reverse("review")), (row.name, row.get_absolute_url())],
        "page": page,
        "rows": rows,
        "verdicts": verdicts.of([each.item.run for each in rows], user),
        "show": show,
        "shows": overview.SHOWS.items(),
        "named": row.reviewers.all(),
        "chosen_by": "" if Names(user).hide_any(row) else row.filters,
        "may_review": queues_of(user).filter(pk=pk).exists(),
        "may_close": queues.may_close(user, row),
        "drafts": overview.drafts(row, user),
        "undoable": writing.undoable(row, user),
        "address": request.get_full_path(),
    }
    return render(request, "reviews/table.html" if request.headers.get("HX-Request") else "reviews/queue.html", context)


@require_POST
def close(request: HttpRequest, pk: int) -> HttpResponse:
    """Take no more reviews; what is submitted is open to everybody from now on."""
    user = access.require(request, MAKES_QUEUES)
    row = get_object_or_404(ReviewQueue, pk=pk)
    if row.closed is None and not queues.may_close(user, row):
        raise PermissionDenied("A queue is closed by an admin, or by who made it.")
    with transaction.atomic():
        if queues.close(row):
            audit.record(request, Verb.QUEUE_CLOSED, row)
            notify.tell(f"queue.{pk}")
            messages.success(request, "The queue is closed. Its opinions are open to the whole team.")
    return redirect(row)


@require_GET
def next_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Reserve the next item for this person, and show it."""
    user = access.require(request, Role.REVIEWER)
    row = get_object_or_404(ReviewQueue, pk=pk)
    review = reservation.take(row, user)
    if review is None:
        messages.info(request, nothing_left(row, user))
        return redirect(row)
    notify.tell(f"queue.{pk}")
    return redirect(review.item)


def nothing_left(queue: ReviewQueue, user: User) -> str:
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
    """Focus mode: the item's evidence, and the rubric for who has reserved it. htmx and scripts are sent the middle
    and the rubric alone."""
    user = access.require(request)
    row = item_at(pk, position)
    if request.headers.get("X-Part") == "focus":
        return render(request, "reviews/focus.html", focus(row, user))
    return render(request, "reviews/item.html", page_context(row, user))


def item_at(pk: int, position: int) -> ReviewItem:
    return get_object_or_404(ReviewItem.objects.select_related("queue", "run__owner"), queue_id=pk, position=position)


def page_context(item: ReviewItem, user: User, typed: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What the whole page shows."""
    return focus(item, user, typed) | side(item.queue, item.position, user)


def focus(item: ReviewItem, user: User, typed: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What the middle and the rubric show; in the rubric what was `typed`, else what is kept."""
    row = overview.rows([item], user)[0]
    overview.note_shown([row], user)
    since = evidence.seen(item, row.mine)
    kept = rubric.opinion_of(row.mine) if row.mine else {}
    filled = kept if typed is None else {name: typed.get(name, "") for name in rubric.FIELDS}
    return {
        "item": item,
        "queue": item.queue,
        "run": item.run,
        "row": row,
        "mine": row.mine,
        "state": writing_state(row.mine, item, user),
        "crumbs": crumbs(item),
        "lines": [(line, str(filled.get(line.name) or "")) for line in rubric.LINES],
        "filled": filled,
        "own": rubric.in_words(row.mine) if row.mine else [],
        "scores": [str(score) for score in rubric.SCORES],
        "verdicts": [(*choice, key) for choice, key in zip(Verdict.choices, "avr", strict=True)],
        "news": evidence.news(item.run, since),
        "new_count": max(0, item.run.last_seq - since),
        **settled(item, row, user),
        **evidence.of(item.run),
    }


def settled(item: ReviewItem, row: overview.Row, user: User) -> dict[str, Any]:
    """The final verdicts on the item, the newest first, for who may read its opinions; and whether this person may
    give one."""
    readable = bool(row.opinions) and not row.hidden and not (row.mine and row.mine.state == State.DRAFT)
    given = list(item.adjudications.select_related("adjudicator")) if readable else []
    return {"finals": given, "may_settle": readable and not adjudication.obstacle(user, item)}


def crumbs(item: ReviewItem) -> list[tuple[str, str]]:
    """The way to an item, which is the same wherever the item is drawn."""
    queue = item.queue
    return [
        ("Review", reverse("review")),
        (queue.name, queue.get_absolute_url()),
        (f"Item {item.position}", item.get_absolute_url()),
    ]


def writing_state(mine: Review | None, item: ReviewItem, user: User) -> str:
    """What the rubric is for this person: "write", "offer" (to take it), "lapsed", "closed", "done", "declined" or
    "read"."""
    if mine and mine.state != State.DRAFT:
        return "done" if mine.state == State.SUBMITTED else "declined"
    if not queues_of(user).filter(pk=item.queue_id).exists():
        return "closed" if mine else "read"
    if mine:
        return "write" if mine.holds() or reservation.has_room(item, user) else "lapsed"
    return "offer" if not item.complete else "read"


def side(queue: ReviewQueue, position: int, user: User) -> dict[str, Any]:
    """What the column with the queue shows."""
    counted = queues.with_items(ReviewQueue.objects.filter(pk=queue.pk)).get()
    near = overview.around(queue, position, user)
    return {
        **near,
        "after": counted.total - near["last"],
        "counted": counted,
        "position": position,
        "undoable": writing.undoable(queue, user),
    }


@require_safe
def line(request: HttpRequest, pk: int, position: int) -> HttpResponse:
    """The column with the queue, around one item."""
    user = access.require(request)
    row = get_object_or_404(ReviewQueue, pk=pk)
    return render(request, "reviews/line.html", {"queue": row} | side(row, position, user))


@require_safe
def ahead(request: HttpRequest, pk: int, position: int) -> HttpResponse:
    """What would come after this item, to be loaded before it is wanted. Nothing is reserved yet."""
    user = access.require(request, Role.REVIEWER)
    here = item_at(pk, position)
    key = next((key for key in reservation.coming(here.queue, user) if key != here.pk), None)
    if key is None:
        return HttpResponse(status=204)
    row = ReviewItem.objects.select_related("queue", "run__owner").get(pk=key)
    context = focus(row, user)
    context["state"] = "write" if context["state"] in {"offer", "write", "lapsed"} else context["state"]
    response = render(request, "reviews/focus.html", context)
    response.headers["X-Address"] = reverse("review-item", args=[pk, row.position])
    return response
