"""Pages of comments, of tags beside them, and of notifications.

Comments: fragments of the run page, forms, permanent links. Notifications: the page and the bell in the header.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from experiments.comments import actions, anchors, lists
from experiments.core import access, notifications, paging, tagging
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.display_name import person
from experiments.core.errors import ActionRefused, InvalidInput
from experiments.core.visibility import visible_to
from experiments.display import window
from experiments.models import Comment, Event, Role, Run, Thread

PER_PAGE = 40
"""Notifications per page."""


@require_safe
def page(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the threads of a run as the Comments tab. A browser without scripts is redirected to the tab."""
    run = access.get_run(request, pk)
    if not request.htmx:
        return redirect(f"{run.get_absolute_url()}?{urlencode({**request.GET.dict(), 'tab': 'comments'})}")
    return _panel(request, run, request.GET.dict())


@require_safe
def show_event_threads(request: HttpRequest, pk: int, seq: int) -> HttpResponse:
    """Show the threads on one event with a form for a new one; on a quote or an image if the query names one."""
    run = access.get_run(request, pk)
    return _event_panel(request, run, get_object_or_404(run.events, seq=seq), request.GET.dict())


@require_safe
def show_marks(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the number of comments per place, so that the browser can mark the transcript."""
    user, run = access.require(request), get_object_or_404(Run, pk=pk)
    shown = None if lists.is_hidden_from(user, run) else lists.comment_marks(run)
    return render(request, "comments/marks.html", {"run": run, "marks": shown, **lists.viewer_context(user)})


@require_safe
def list_mentionable(request: HttpRequest) -> HttpResponse:
    """Return all users who can be mentioned, for the list that opens after an @."""
    access.require(request, Role.RESEARCHER)
    known = [{"name": user.get_username(), "words": person(user)} for user in actions.list_members()]
    return JsonResponse({"people": known})


@require_safe
def comment(request: HttpRequest, pk: int) -> HttpResponse:
    """Redirect the permanent URL of a comment to where it is shown now."""
    access.require(request)
    run = get_object_or_404(Comment.objects.select_related("thread__run"), pk=pk).thread.run
    return redirect(f"{run.get_absolute_url()}?tab=comments&comment={pk}#comment-{pk}")


# --- writing -----------------------------------------------------------------------------------------


@require_POST
def start(request: HtmxRequest, pk: int) -> HttpResponse:
    """Start a thread on what the form names."""
    actor = Actor.of(request, Role.RESEARCHER)
    run = access.get_run(request, pk)
    text = request.POST.get("text", "")
    return _answer_written(
        request, run, lambda: actions.start_thread(actor, anchors.read_anchor(run, request.POST), text)
    )


@require_POST
def reply(request: HtmxRequest, pk: int) -> HttpResponse:
    """Add a comment to a thread."""
    actor = Actor.of(request, Role.RESEARCHER)
    thread = get_object_or_404(visible_to(Thread.objects.select_related("run")), pk=pk)
    return _answer_written(request, thread.run, lambda: actions.reply(actor, thread, request.POST.get("text", "")))


@require_POST
def edit(request: HtmxRequest, pk: int) -> HttpResponse:
    """Change the text of one's own comment."""
    actor = Actor.of(request, Role.RESEARCHER)
    row = get_object_or_404(Comment.objects.select_related("thread__run"), pk=pk)
    return _answer_written(request, row.thread.run, lambda: actions.edit(actor, row, request.POST.get("text", "")))


@require_POST
def delete(request: HtmxRequest, pk: int) -> HttpResponse:
    """Delete one's own comment."""
    actor = Actor.of(request, Role.RESEARCHER)
    row = get_object_or_404(Comment.objects.select_related("thread__run"), pk=pk)
    return _answer_written(request, row.thread.run, lambda: actions.delete(actor, row))


@require_POST
def resolve(request: HtmxRequest, pk: int) -> HttpResponse:
    """Resolve or reopen a thread."""
    actor = Actor.of(request, Role.RESEARCHER)
    thread = get_object_or_404(visible_to(Thread.objects.select_related("run")), pk=pk)
    resolved = request.POST.get("resolved") == "yes"
    return _answer_written(request, thread.run, lambda: actions.resolve(actor, thread, resolved))


def _viewer(request: HttpRequest) -> User:
    """Return the user. The caller has checked access."""
    assert isinstance(request.user, User)
    return request.user


def _answer_written(
    request: HtmxRequest, run: Run, write: Callable[[], actions.WrittenComment | Comment | Thread]
) -> HttpResponse:
    """Write, then return the part of the page around the form. If refused, return the reason and leave the form."""
    try:
        done = write()
    except ActionRefused as problem:
        return _answer_with_toast(request, run, HttpResponse(status=204), str(problem), "error")
    words = done.notice if isinstance(done, actions.WrittenComment) else ""
    shown = HttpResponse()
    if request.htmx:
        event = run.events.filter(seq=window.number(request.POST, "in") or 0).first()
        shown = (
            _event_panel(request, run, event, {})
            if event
            else _panel(request, run, {"show": request.POST.get("show", "")})
        )
    return _answer_with_toast(request, run, shown, words, "warning")


def _answer_with_toast(request: HtmxRequest, run: Run, response: HttpResponse, words: str, kind: str) -> HttpResponse:
    """Add a message to the response. A browser without scripts is redirected to the Comments tab with the message."""
    if not request.htmx:
        if words:
            messages.add_message(request, messages.ERROR if kind == "error" else messages.WARNING, words)
        return redirect(f"{run.get_absolute_url()}?tab=comments")
    if words:
        response["HX-Trigger"] = json.dumps({"toast": {"value": words, "kind": kind}})
    return response


# --- parts of the page -------------------------------------------------------------------------------


def _panel(request: HttpRequest, run: Run, params: Mapping[str, str]) -> HttpResponse:
    return render(request, "comments/list.html", lists.run_panel(run, _viewer(request), {**params, "tab": "comments"}))


def _event_panel(request: HttpRequest, run: Run, event: Event, params: Mapping[str, str]) -> HttpResponse:
    return render(request, "comments/spot.html", lists.event_panel(run, _viewer(request), event, params))


# --- tags -----------------------------------------------------------------------------------------------------


@require_POST
def tag(request: HtmxRequest, pk: int) -> HttpResponse:
    """Add a tag to what the form names, or remove it. Returns the part of the page around the form."""
    actor = Actor.of(request, Role.RESEARCHER)
    run = access.get_run(request, pk)
    try:
        anchor = anchors.read_anchor(run, request.POST)
        row = anchor.observation or anchor.experiment
        if row is None:
            raise InvalidInput("Only experiments and images have tags here; a run has them on the Runs page.", "on")
        change = tagging.untag if request.POST.get("verb") == "remove" else tagging.tag
        change(actor, row, request.POST.get("tag", ""))
    except InvalidInput as problem:
        return _answer_with_toast(request, run, HttpResponse(status=204), str(problem), "error")
    if not request.htmx:
        messages.success(request, f"Changed the tags of {row}.")
        return redirect(run)
    event = get_object_or_404(run.events, seq=window.number(request.POST, "in"))
    about = {name: request.POST[name] for name in ("on", "experiment", "image") if request.POST.get(name)}
    return _event_panel(request, run, event, about)


# --- notifications --------------------------------------------------------------------------------------------


@require_safe
def notification_list(request: HtmxRequest) -> HttpResponse:
    """List all notifications, or the unread ones. htmx gets the list alone."""
    user = access.require(request)
    only = request.GET.get("show") == "unread"
    rows = notifications.list_unread(user) if only else notifications.list_notifications(user)
    number = paging.number_of(request.GET.get("page", "")) or 1
    shown = paging.Page(number, PER_PAGE, paging.count(rows), {"show": "unread"} if only else {})
    context = {
        "page": shown,
        "rows": rows[shown.start : shown.end],
        "only_unread": only,
        "unread": notifications.list_unread(user).count(),
        "query": request.GET.urlencode(),
    }
    alone = request.htmx and not request.htmx.history_restore_request
    return render(request, "comments/notifications/list.html" if alone else "comments/notifications/page.html", context)


@require_safe
def show_unread(request: HttpRequest) -> HttpResponse:
    """Show the number of unread notifications.

    `after` is the newest notification that the page knows. If there is a newer one, it is shown as a toast.
    """
    user = access.require(request)
    unread = notifications.list_unread(user)
    newest = unread.first()
    known = window.number(request.GET, "after")
    context = {"unread": unread[: notifications.MAX_COUNT + 1].count(), "newest": newest.pk if newest else known or 0}
    response = render(request, "comments/notifications/unread.html", context)
    if newest is not None and known is not None and newest.pk > known:
        response["HX-Trigger"] = json.dumps({"toast": {"value": newest.words, "kind": ""}})
    return response


@require_safe
def follow(request: HttpRequest, pk: int) -> HttpResponse:
    """Redirect to where a notification leads, and mark it as read."""
    user = access.require(request)
    row = get_object_or_404(notifications.list_notifications(user), pk=pk)
    notifications.mark_read(notifications.list_notifications(user).filter(pk=pk), user)
    return redirect(row.address or "notifications")


@require_POST
def read_notifications(request: HtmxRequest) -> HttpResponse:
    """Mark one notification as read, or all."""
    user = access.require(request)
    rows, key = notifications.list_notifications(user), window.number(request.POST, "notification")
    if key is None and "all" not in request.POST:
        return HttpResponse(status=400)
    notifications.mark_read(rows if key is None else rows.filter(pk=key), user)
    # For htmx the bell rings, and the page asks for its list.
    return HttpResponse(status=204) if request.htmx else redirect("notifications")
