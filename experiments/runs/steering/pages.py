"""Controls of one run's page: pause, resume, send a note, change limits, stop."""

from __future__ import annotations

import json
from collections.abc import Callable

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from experiments.core import access
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.errors import ActionRefused
from experiments.display.number_format import dollars, thousands
from experiments.models import Role, Run
from experiments.runs.steering import actions
from experiments.runs.steering.forms import LimitsForm, MessageForm
from workers.record import limits
from workers.record.limits import DEFAULT_LIMITS


@require_POST
def act(request: HtmxRequest, pk: int, do: Callable[[Actor, int], bool]) -> HttpResponse:
    """Pause, resume or stop, as the address says. The page follows by its stream; a browser without scripts is sent
    back to it."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    try:
        do(Actor.of(request, Role.RESEARCHER), run.pk)
    except ActionRefused as refused:
        return _answer_with_toast(request, run, str(refused), "error", status=409)
    return HttpResponse(status=204) if request.htmx else redirect(run)


def _answer_with_toast(request: HtmxRequest, run: Run, words: str, kind: str, status: int = 204) -> HttpResponse:
    """Say something on the page that asked, or on the one that the browser is sent to."""
    if request.htmx:
        toast = {"toast": {"words": words, "kind": kind}}
        return HttpResponse(status=status, headers={"HX-Trigger": json.dumps(toast)})
    messages.add_message(request, messages.ERROR if kind == "error" else messages.INFO, words)
    return redirect(run)


@require_POST
def note(request: HtmxRequest, pk: int) -> HttpResponse:
    """Tell the agent something. If it would not read it, the text stays in its field."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    try:
        actions.send_note(Actor.of(request, Role.RESEARCHER), run.pk, request.POST.get("text", ""))
    except ActionRefused as refused:
        # The refusal may be due to a change of the run: show it as it is now.
        run.refresh_from_db()
        context = {"run": run, "refused": str(refused), "message": MessageForm(run, request.POST)}
        template = "runs/steering/refused.html" if request.htmx else "runs/steering/note.html"
        return render(request, template, context, status=409)
    return HttpResponse(status=204) if request.htmx else redirect(run)


@require_http_methods(["GET", "HEAD", "POST"])
def change_limits(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the form, and apply it."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    now = {name: run.limits.get(name) for name in DEFAULT_LIMITS}
    form = LimitsForm(request.POST) if request.method == "POST" else LimitsForm(initial=now)
    if not form.is_bound or not form.is_valid():
        return _render_form(request, run, form, 200 if not form.is_bound else 422)
    given = form.cleaned_data
    wanted = {name: given[name] for name in DEFAULT_LIMITS}
    try:
        changed = actions.change_limits(Actor.of(request, Role.RESEARCHER), run.pk, wanted, given["why"], given["seen"])
    except ActionRefused as refused:
        run.refresh_from_db()
        form.add_error(None, str(refused))
        return _render_form(request, run, form, 409)  # with the limits of now as those that were seen
    words = "The new limits hold from now on." if changed else "The limits are as they were."
    if changed and (over := limits.find_exhausted(wanted, actions.count_used(run))):
        words = f"The new limits hold. One is reached already, {over}: the agent is asked for its final answer next."
    return _answer_with_toast(request, run, words, "success")


def _describe_use(run: Run) -> dict[str, str]:
    """Return how much of each limit is used, in words."""
    used = actions.count_used(run)
    words = {name: f"{thousands(int(used[name]))} used" for name in ("rounds", "tokens")}
    cost = "" if run.known_cost is None else " used"
    return words | {"cost": dollars(run.known_cost) + cost, "seconds": f"{used['seconds']:.0f} used"}


def _render_form(request: HtmxRequest, run: Run, form: LimitsForm, status: int) -> HttpResponse:
    """Render the form, in the dialog of the run's page or as a full page."""
    for name, used in _describe_use(run).items():
        form[name].help_text = used
    # After a conflict the form shows the current limits, which then count as seen.
    seen = (
        request.POST.get("seen", "")
        if status == 422
        else json.dumps({name: run.limits.get(name) for name in DEFAULT_LIMITS})
    )
    fields = [form[name] for name in DEFAULT_LIMITS]
    context = {"run": run, "form": form, "limits": fields, "seen": seen, "part": request.htmx}
    template = "runs/steering/limits_form.html" if request.htmx else "runs/steering/limits.html"
    return render(request, template, context, status=status)
