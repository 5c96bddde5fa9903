"""What comes before and after a review: a run is put up for one, and somebody gives the final verdict."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from experiments.core import access, audit, notify
from experiments.core.audit import Verb
from experiments.core.review_rights import MAKES_QUEUES
from experiments.models.member import Role
from experiments.reviews import adjudication, queues, run_reviews
from experiments.reviews.pages import item_at, page_context
from experiments.reviews.writing_pages import number


@require_http_methods(["GET", "HEAD", "POST"])
def put_up(request: HttpRequest, pk: int) -> HttpResponse:
    """Choose an open queue for a run, and add it there."""
    user = access.require(request, MAKES_QUEUES)
    run = access.get_run(request, pk)
    if not run_reviews.may_put_up(run, user, access.role_of(user) or Role.VIEWER):
        raise PermissionDenied("Runs that have ended are put up for review: your own, by an admin any.")
    if request.method != "POST":
        return render(request, "reviews/put_up.html", {"run": run, "offered": run_reviews.offered(run)})
    try:
        with transaction.atomic():
            item = queues.put_up(user, run, number(request, "queue"))
            audit.record(request, Verb.RUN_PUT_UP, run, queue=item.queue_id)
    except queues.Refused as refused:
        messages.warning(request, str(refused))
        return redirect("run-review", pk)
    notify.tell(f"queue.{item.queue_id}")
    messages.success(request, f"Run {run.pk} is up for review in “{item.queue.name}”. You will be told of its verdict.")
    return redirect(run)


@require_POST
def adjudicate(request: HttpRequest, pk: int, position: int) -> HttpResponse:
    """Give the final verdict on an item."""
    user = access.require(request, Role.REVIEWER)
    row = item_at(pk, position)
    words = [request.POST.get(name, "") for name in ("verdict", "corrected_label", "reason")]
    try:
        with transaction.atomic():
            made = adjudication.adjudicate(row.pk, user, *words)
            audit.record(request, Verb.REVIEW_ADJUDICATED, row, final_verdict=made.pk)
    except adjudication.Refused as refused:
        messages.warning(request, str(refused))
        if not refused.is_about_words:
            return redirect(row)
        typed = dict(zip(("verdict", "corrected_label", "reason"), words, strict=True))
        return render(request, "reviews/item.html", page_context(row, user) | {"final_typed": typed}, status=422)
    notify.tell(f"queue.{pk}")
    messages.success(request, f"The final verdict on item {position} stands. Its author is told.")
    return redirect(row)
