"""What people do to one run from its page: pause, go on, send a note, change limits, stop."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from experiments.core import access
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.errors import ActionRefused
from experiments.models import Run
from experiments.models.member import Role
from experiments.runs.asking.form import ABOVE_ZERO
from experiments.runs.steering import actions
from workers.record import limits
from workers.record.limits import USUAL

WHY_CHARS = 500


@require_POST
def pause(request: HtmxRequest, pk: int) -> HttpResponse:
    """Pause between two rounds."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    return act_and_answer(request, run, lambda by: actions.pause(by, run.pk))


@require_POST
def resume(request: HtmxRequest, pk: int) -> HttpResponse:
    """Resume, retry, try again, or pause no longer: whatever has the run go on. Pressed twice, it goes on once."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    return act_and_answer(request, run, lambda by: actions.resume(by, run.pk))


@require_POST
def stop(request: HtmxRequest, pk: int) -> HttpResponse:
    """Ask for the end of a run. One that no worker holds ends at once, the others as soon as their worker sees it."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    return act_and_answer(request, run, lambda by: actions.stop(by, run.pk))


def act_and_answer(request: HtmxRequest, run: Run, do: Callable[[Actor], object]) -> HttpResponse:
    """The page follows by its stream; a browser without scripts is sent back to it."""
    try:
        do(Actor.of(request, Role.RESEARCHER))
    except ActionRefused as refused:
        return answer_with_toast(request, run, str(refused), "error", status=409)
    return HttpResponse(status=204) if request.htmx else redirect(run)


def answer_with_toast(request: HtmxRequest, run: Run, words: str, kind: str, status: int = 204) -> HttpResponse:
    """Say something on the page that asked, or on the one that the browser is sent to."""
    if request.htmx:
        toast = {"toast": {"words": words, "kind": kind}}
        return HttpResponse(status=status, headers={"HX-Trigger": json.dumps(toast)})
    messages.add_message(request, messages.ERROR if kind == "error" else messages.INFO, words)
    return redirect(run)


@require_POST
def note(request: HtmxRequest, pk: int) -> HttpResponse:
    """Tell the agent something. Where nobody would hear it, the words stay where they were written."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    text = request.POST.get("text", "")
    try:
        actions.send_note(Actor.of(request, Role.RESEARCHER), run.pk, text)
    except ActionRefused as refused:
        run.refresh_from_db()
        part = request.htmx
        context = {"run": run, "refused": str(refused), "text": text, "most": actions.MOST_CHARS}
        return render(request, "runs/steering/refused.html" if part else "runs/steering/note.html", context, status=409)
    return HttpResponse(status=204) if request.htmx else redirect(run)


class LimitsForm(forms.Form):
    """Empty is no limit. `seen` holds the limits that the form was filled with."""

    rounds = forms.IntegerField(required=False, max_value=10**6)
    tokens = forms.IntegerField(required=False, max_value=10**12)
    cost = forms.FloatField(required=False, max_value=10**6)
    seconds = forms.IntegerField(required=False, max_value=10**8)
    why = forms.CharField(required=False, max_length=WHY_CHARS)
    seen = forms.JSONField(required=False)

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        for name in USUAL:
            if data.get(name) is not None and not data[name] > 0:
                self.add_error(name, ABOVE_ZERO)
        if not isinstance(data.get("seen"), dict | None):
            data["seen"] = None
        return data


@require_http_methods(["GET", "HEAD", "POST"])
def change_limits(request: HtmxRequest, pk: int) -> HttpResponse:
    """The form, and what comes of it."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    now = {name: run.limits.get(name) for name in USUAL}
    form = LimitsForm(request.POST) if request.method == "POST" else LimitsForm(initial=now)
    if not form.is_bound or not form.is_valid():
        return render_form(request, run, form, 200 if not form.is_bound else 422)
    wanted = {name: form.cleaned_data[name] for name in USUAL}
    try:
        changed = actions.change_limits(
            Actor.of(request, Role.RESEARCHER), run.pk, wanted, form.cleaned_data["why"], form.cleaned_data["seen"]
        )
    except ActionRefused as refused:
        run.refresh_from_db()
        form.add_error(None, str(refused))
        return render_form(request, run, form, 409)  # with the limits of now as those that were seen
    return answer_with_toast(
        request, run, after_change(run, wanted) if changed else "The limits are as they were.", "success"
    )


def after_change(run: Run, wanted: actions.NewLimits) -> str:
    """What new limits lead to."""
    over = limits.used_up(wanted, actions.count_used(run))
    if not over:
        return "The new limits hold from now on."
    return f"The new limits hold. One is reached already, {over}: the agent is asked for its final answer next."


def render_form(request: HtmxRequest, run: Run, form: LimitsForm, status: int) -> HttpResponse:
    """The form, alone in the dialog of the run's page, or on a page of its own."""
    part = request.htmx
    spent = actions.count_used(run) | {"cost": run.known_cost}
    lines = [(form[name], spent[name]) for name in USUAL]
    seen = request.POST.get("seen", "") if status == 422 else json.dumps({name: run.limits.get(name) for name in USUAL})
    context = {"run": run, "form": form, "lines": lines, "seen": seen, "part": part}
    return render(
        request, "runs/steering/limits_form.html" if part else "runs/steering/limits.html", context, status=status
    )
