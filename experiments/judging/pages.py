"""Pages for judging: one item at a time, undo, close, and the answers as a file."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from experiments.core import access
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.errors import ActionRefused, StateConflict
from experiments.core.params import parse_float, parse_key
from experiments.judging import actions, answers_csv
from experiments.judging.desk import DESKS, Desk, find_desk
from experiments.models import Role

# A page holds `AHEAD` items; more in a request are not from our script.
HELD = 50
"""Maximum number of items that a page may say it holds."""


def _get_desk(kind: str, pk: int) -> Desk:
    desk = find_desk(kind, pk)
    if desk is None:
        raise Http404("There is nothing of that kind and number to judge.")
    return desk


@require_safe
def judge(request: HttpRequest, kind: str, pk: int) -> HttpResponse:
    """Show the next item with the following ones loaded but hidden, or a summary if this person has judged all."""
    user = access.require(request, Role.REVIEWER)
    desk = _get_desk(kind, pk)
    # The row's own page shows the result.
    if not desk.is_open:
        return redirect(desk.row)
    done, total = desk.count_progress(user)
    context = {
        "kind": kind,
        "row": desk.row,
        "items": desk.list_next(user, desk.AHEAD),
        "done": done,
        "total": total,
        "undoable": desk.find_last(user) is not None,
        **desk.describe(user),
    }
    return render(request, desk.PAGE, context)


@require_POST
def answer(request: HtmxRequest, kind: str, pk: int) -> HttpResponse:
    """Store an answer. htmx gets the item after those that its page holds; other browsers get the next page."""
    actor = Actor.of(request, Role.REVIEWER)
    desk, sent, scripted = _get_desk(kind, pk), request.POST, bool(request.htmx)
    item, seconds = parse_key(sent.get("item")), parse_float(sent.get("seconds", ""))
    try:
        actions.answer(actor, kind, pk, item, sent.get("answer", ""), seconds)
    except ActionRefused as refusal:
        if scripted:
            # Plain text: the script shows it as a message.
            return HttpResponse(str(refusal), status=409, content_type="text/plain; charset=utf-8")
        messages.error(request, str(refusal))
    if not scripted:
        return redirect("judging", kind, pk)
    # Read again: the answer may have closed the desk or changed its next items
    desk = _get_desk(kind, pk)
    held = [parse_key(each) for each in sent.getlist("holds")[:HELD]]
    items = desk.list_next(actor.person, 1, held)
    return render(request, desk.ITEMS, {"kind": kind, "row": desk.row, "items": items, "behind": True})


@require_POST
def undo(request: HttpRequest, kind: str, pk: int) -> HttpResponse:
    """Take the last answer back and show its item again."""
    actor = Actor.of(request, Role.REVIEWER)
    _get_desk(kind, pk)
    try:
        actions.undo(actor, kind, pk)
    except ActionRefused as refusal:
        messages.error(request, str(refusal))
    return redirect("judging", kind, pk)


@require_POST
def close(request: HttpRequest, kind: str, pk: int) -> HttpResponse:
    """Close judging. A trial then reveals whose labels are whose; a check is computed from the images judged so far."""
    # An unknown kind is answered with 404 below, for any role.
    actor = Actor.of(request, DESKS[kind].CLOSES if kind in DESKS else Role.VIEWER)
    desk = _get_desk(kind, pk)
    try:
        actions.close(actor, kind, pk)
    except ActionRefused as refusal:
        messages.error(request, str(refusal))
    return redirect(desk.row)


@require_safe
def file(request: HttpRequest, kind: str, pk: int) -> HttpResponse:
    """Return all answers as CSV. Raises Http404 while they could bias others, and if no person was asked."""
    access.require(request)
    try:
        return answers_csv.send_answers(_get_desk(kind, pk))
    except StateConflict as refused:
        raise Http404(str(refused)) from None
