"""What one should know of: the page, the bell of the frame, and what was read."""

from __future__ import annotations

import json

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from experiments.core import access, notifications
from experiments.core.access import HtmxRequest
from experiments.core.paging import Page, count, number_of
from experiments.display import window

PER_PAGE = 40


@require_safe
def page(request: HtmxRequest) -> HttpResponse:
    """All of them, or those that are unread; htmx is sent the list alone."""
    user = access.require(request)
    only = request.GET.get("show") == "unread"
    rows = notifications.unread(user) if only else notifications.of(user)
    number = number_of(request.GET.get("page", "")) or 1
    shown = Page(number, PER_PAGE, count(rows), {"show": "unread"} if only else {})
    context = {
        "page": shown,
        "rows": rows[shown.start : shown.end],
        "only_unread": only,
        "unread": notifications.unread(user).count(),
        "query": request.GET.urlencode(),
    }
    alone = request.htmx and not request.htmx.history_restore_request
    return render(request, "comments/notifications/list.html" if alone else "comments/notifications/page.html", context)


@require_safe
def bell(request: HttpRequest) -> HttpResponse:
    """How many are unread. With `after`, the number of the newest that the page knows, what is newer is said aloud."""
    user = access.require(request)
    unread = notifications.unread(user)
    newest = unread.first()
    known = window.number(request.GET, "after")
    context = {"unread": unread[: notifications.SHOWN + 1].count(), "newest": newest.pk if newest else known or 0}
    response = render(request, "comments/notifications/bell.html", context)
    if newest is not None and known is not None and newest.pk > known:
        response["HX-Trigger"] = json.dumps({"toast": {"value": newest.words, "kind": ""}})
    return response


@require_safe
def follow(request: HttpRequest, pk: int) -> HttpResponse:
    """To where one leads; from then on it is read."""
    user = access.require(request)
    row = get_object_or_404(notifications.of(user), pk=pk)
    notifications.read(notifications.of(user).filter(pk=pk), user)
    return redirect(row.url or "notifications")


@require_POST
def read(request: HtmxRequest) -> HttpResponse:
    """One is read, or all are."""
    user = access.require(request)
    rows, key = notifications.of(user), window.number(request.POST, "notification")
    if key is None and "all" not in request.POST:
        return HttpResponse(status=400)
    notifications.read(rows if key is None else rows.filter(pk=key), user)
    return page_again(request)


def page_again(request: HtmxRequest) -> HttpResponse:
    """Where the form stood; for htmx the bell rings, and the page asks for its list."""
    return HttpResponse(status=204) if request.htmx else redirect("notifications")
