"""One run: the tabs of its page, its events, and the buttons that stop it and have it try again."""

from __future__ import annotations

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_POST, require_safe

from experiments import access, audit, live, rendering, transcript
from experiments.models import Run
from experiments.models.member import Role
from experiments.models.run import ENDED, Status
from experiments.run_page import raw, tabs, window
from experiments.run_page import transcript as transcript_tab
from workers.jobs import queue


@require_safe
def page(request: HttpRequest, pk: int) -> HttpResponse:
    """One tab of the run; the tab alone for htmx. The browser then follows from the last event drawn."""
    run = access.get_run(request, pk)
    tab = tabs.chosen(request.GET.get("tab", ""))
    context = {
        "run": run,
        "tab": tab,
        "tabs": tabs.TABS.values(),
        "complete": run.has_ended,
        "may_stop": access.role_of(request.user) != Role.VIEWER,
        "head": rendering.head(run),
        **tab.read(run, request.GET),
    }
    part = request.headers.get("HX-Request") and not request.headers.get("HX-History-Restore-Request")
    response = render(request, "run/panel.html" if part else "run.html", context)
    patch_vary_headers(response, ["HX-Request", "HX-History-Restore-Request"])
    return response


@require_safe
def events(request: HttpRequest, pk: int) -> HttpResponse:
    """Events of a gap in the transcript, and what is left of it. Raises Http404 if there is no such gap."""
    run = access.get_run(request, pk)
    after, before = window.number(request.GET, "after"), window.number(request.GET, "before")
    if after is None or before is None or not after + 1 < before <= run.last_seq + 1:
        raise Http404("There are no events between these.")
    gap = window.Gap(after, before)
    return render(request, "run/pieces.html", transcript_tab.fill(run, gap, request.GET.get("from") == "below"))


@require_safe
def events_file(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """All events as a file of JSON lines."""
    run = access.get_run(request, pk)
    name = f'attachment; filename="run-{run.pk}-events.jsonl"'
    headers = {"Content-Disposition": name, "X-Content-Type-Options": "nosniff"}
    return StreamingHttpResponse(raw.as_lines(run), content_type="application/jsonl; charset=utf-8", headers=headers)


@require_POST
def stop(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for the end of a run. One that no worker holds ends at once, the others as soon as their worker sees it."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    ask_to_stop(request, run)
    return answer(request, run)


@transaction.atomic
def ask_to_stop(request: HttpRequest, run: Run) -> bool:
    """Whether there was anything to stop."""
    if run.has_ended or not Run.objects.filter(pk=run.pk).exclude(status__in=ENDED).update(cancel_requested=True):
        return False
    audit.record(request, "run.stopped", run)
    run.refresh_from_db()
    if run.status != Status.RUNNING or not run.is_leased():
        end_now(run, f"Stopped by {request.user.get_username()}.")
    return True


@require_POST
def try_again(request: HttpRequest, pk: int) -> HttpResponse:
    """Go on with a run that waits for a person. Pressed twice, it goes on once."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    ask_to_go_on(request, run)
    return answer(request, run)


@transaction.atomic
def ask_to_go_on(request: HttpRequest, run: Run) -> None:
    if transcript.resume(run.pk, request.user.get_username()):
        audit.record(request, "run.resumed", run)
        queue.enqueue(run.pk)


def answer(request: HttpRequest, run: Run) -> HttpResponse:
    """Every viewer hears of what was done; a browser without scripts is sent back to the page."""
    live.ring(run.pk, run.last_seq)
    return HttpResponse(status=204) if request.headers.get("HX-Request") else redirect(run)


def end_now(run: Run, reason: str) -> None:
    """Record the end; a worker that ended the run in the same moment was first, and that is as good."""
    try:
        transcript.append(run.pk, "cancelled", transcript.end(reason))
    except transcript.RunEnded:
        return
