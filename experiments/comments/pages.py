"""Comments on a run: fragments that its page shows, forms that write, permanent links."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from experiments.comments import anchors, listing, marks, mentions, reading, writing
from experiments.comments.anchors import Nowhere
from experiments.comments.writing import Said, Unfit
from experiments.core import access
from experiments.core.access import HtmxRequest
from experiments.core.display_name import person
from experiments.display import window
from experiments.models import Comment, Event, Run, Thread
from experiments.models.member import Role


@require_safe
def page(request: HtmxRequest, pk: int) -> HttpResponse:
    """The threads of a run as the Comments tab shows them; a browser without scripts is sent to the tab."""
    run = access.get_run(request, pk)
    if not request.htmx:
        return redirect(f"{run.get_absolute_url()}?{urlencode({**request.GET.dict(), 'tab': 'comments'})}")
    return listed(request, run, request.GET.dict())


@require_safe
def at(request: HttpRequest, pk: int, seq: int) -> HttpResponse:
    """The threads on one event and what it shows, with a form for another; on words or an image if they are named."""
    run = access.get_run(request, pk)
    return spot(request, run, get_object_or_404(run.events, seq=seq), request.GET.dict())


@require_safe
def marked(request: HttpRequest, pk: int) -> HttpResponse:
    """How many comments stand where, for the browser to mark the transcript with."""
    run = access.get_run(request, pk)
    user = person_of(request)
    shown = None if reading.hides(user, run) else marks.of(run)
    return render(request, "comments/marks.html", {"run": run, "marks": shown, **listing.standing(user)})


@require_safe
def people(request: HttpRequest) -> HttpResponse:
    """Everybody who can be mentioned, for the list that opens after an @."""
    access.require(request, Role.RESEARCHER)
    known = [{"name": user.get_username(), "words": person(user)} for user in mentions.members()]
    return JsonResponse({"people": known})


@require_safe
def comment(request: HttpRequest, pk: int) -> HttpResponse:
    """The permanent address of a comment: where it stands now."""
    access.require(request)
    run = get_object_or_404(Comment.objects.select_related("thread__run"), pk=pk).thread.run
    return redirect(f"{run.get_absolute_url()}?tab=comments&comment={pk}#comment-{pk}")


# --- writing -----------------------------------------------------------------------------------------


@require_POST
def start(request: HtmxRequest, pk: int) -> HttpResponse:
    """A new thread on what the form names."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    return written(
        request, run, lambda: writing.start(request, person_of(request), anchors.read(run, request.POST), text(request))
    )


@require_POST
def reply(request: HtmxRequest, pk: int) -> HttpResponse:
    """One more comment in a thread."""
    access.require(request, Role.RESEARCHER)
    thread = get_object_or_404(Thread.objects.select_related("run"), pk=pk)
    return written(request, thread.run, lambda: writing.reply(request, person_of(request), thread, text(request)))


@require_POST
def edit(request: HtmxRequest, pk: int) -> HttpResponse:
    """Other words for one's own comment."""
    access.require(request, Role.RESEARCHER)
    row = get_object_or_404(Comment.objects.select_related("thread__run"), pk=pk)
    return written(request, row.thread.run, lambda: writing.edit(request, person_of(request), row, text(request)))


@require_POST
def delete(request: HtmxRequest, pk: int) -> HttpResponse:
    """Take one's own comment back."""
    access.require(request, Role.RESEARCHER)
    row = get_object_or_404(Comment.objects.select_related("thread__run"), pk=pk)
    return written(request, row.thread.run, lambda: writing.delete(request, person_of(request), row))


@require_POST
def resolve(request: HtmxRequest, pk: int) -> HttpResponse:
    """Resolve a thread, or open it again."""
    access.require(request, Role.RESEARCHER)
    thread = get_object_or_404(Thread.objects.select_related("run"), pk=pk)
    resolved = request.POST.get("resolved") == "yes"
    return written(request, thread.run, lambda: writing.resolve(request, person_of(request), thread, resolved))


def person_of(request: HttpRequest) -> User:
    """Who asks; access was asked before."""
    assert isinstance(request.user, User)
    return request.user


def text(request: HttpRequest) -> str:
    return str(request.POST.get("text", ""))


def written(request: HtmxRequest, run: Run, write: Callable[[], Said | Comment | Thread]) -> HttpResponse:
    """The part of the page that the form stood in, as it is now; or why nothing was written, and the form stays."""
    try:
        done = write()
    except (Unfit, Nowhere) as problem:
        return told(request, run, HttpResponse(status=204), str(problem), "error")
    words = done.told if isinstance(done, Said) else ""
    seq = window.number(request.POST, "in")
    event = run.events.filter(seq=seq).first() if seq is not None else None
    if not request.htmx:
        return told(request, run, HttpResponse(), words, "warning")
    shown = spot(request, run, event, {}) if event else listed(request, run, {"show": request.POST.get("show", "")})
    return told(request, run, shown, words, "warning")


def told(request: HtmxRequest, run: Run, response: HttpResponse, words: str, kind: str) -> HttpResponse:
    """The answer with words for who asked; a browser without scripts is sent to the Comments tab with them."""
    if not request.htmx:
        if words:
            messages.add_message(request, messages.ERROR if kind == "error" else messages.WARNING, words)
        return redirect(f"{run.get_absolute_url()}?tab=comments")
    if words:
        response["HX-Trigger"] = json.dumps({"toast": {"value": words, "kind": kind}})
    return response


# --- parts of the page -------------------------------------------------------------------------------


def listed(request: HttpRequest, run: Run, params: Mapping[str, str]) -> HttpResponse:
    return render(request, "comments/list.html", listing.read(run, person_of(request), {**params, "tab": "comments"}))


def spot(request: HttpRequest, run: Run, event: Event, params: Mapping[str, str]) -> HttpResponse:
    return render(request, "comments/spot.html", listing.at(run, person_of(request), event, params))
