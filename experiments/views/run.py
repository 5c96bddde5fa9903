"""One run: its page, and the button that stops it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from experiments import access, live, rendering, transcript
from experiments.models import Run
from experiments.models.member import Role

EVENTS_AT_ONCE = 300
"""Events drawn with the page; what follows comes through the socket, as it does while a run goes on."""


@require_safe
def page(request: HttpRequest, pk: int) -> HttpResponse:
    """The transcript so far; the browser then follows from its last event."""
    run = access.get_run(request, pk)
    events = transcript.after(run.pk, 0, EVENTS_AT_ONCE)
    last = events[-1].seq if events else 0
    context = {
        "run": run,
        "events": rendering.render_events(run, events),
        "last": last,
        "complete": run.has_ended and last == run.last_seq,
        "may_stop": access.role_of(request.user) != Role.VIEWER,
        **rendering.pieces(run),
    }
    return render(request, "run.html", context)


@require_POST
def stop(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for the end of a run. One that no worker holds ends at once, the others as soon as their worker sees it."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    Run.objects.filter(pk=run.pk).update(cancel_requested=True)
    run.refresh_from_db()
    if not run.has_ended and not run.is_leased():
        end_now(run, f"Stopped by {request.user.get_username()}.")
    live.ring(run.pk, run.last_seq)
    return HttpResponse(status=204) if request.headers.get("HX-Request") else redirect(run)


def end_now(run: Run, reason: str) -> None:
    """Record the end; a worker that ended the run in the same moment was first, and that is as good."""
    conclusion = {"description": "", "labels": [], "reasoning": "", "bias": ""}
    try:
        transcript.append(run.pk, "cancelled", {"reason": reason, "conclusion": conclusion})
    except transcript.RunEnded:
        return
