"""Fork a run: the form of a run that begins with the rounds of another."""

from __future__ import annotations

from contextlib import suppress

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from experiments.core import access
from experiments.core.actors import Actor
from experiments.core.errors import InvalidFields, StateConflict
from experiments.display import window
from experiments.models import Backbone, Role
from experiments.runs import actions
from experiments.runs.forks import lineage
from experiments.runs.forks.form import ForkForm

MAX_ROUNDS = 40
"""Rounds offered beside the form, the newest; any other can be named in the address."""


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the form; a valid one becomes a run. Without a round in the address, it is the last one that is over."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    number = window.number(request.GET, "round") if "round" in request.GET else lineage.find_last_complete_round(run)
    if not number and "round" not in request.GET:
        return redirect(f"{reverse('query')}?from={run.pk}")
    try:
        at = lineage.find_fork_point(run, number or 0)
    except StateConflict as refused:
        context = {"run": run, "refused": refused, "latest": lineage.find_last_complete_round(run)}
        return render(request, "runs/steering/no_round.html", context, status=404)
    form = ForkForm(run, at, request.POST if request.method == "POST" else None)
    if form.is_bound:
        with suppress(InvalidFields):
            return redirect(actions.ask(Actor.of(request, Role.RESEARCHER), form))
    values = form.data if form.is_bound else form.initial
    context = {
        "run": run,
        "at": at,
        "form": form,
        "rounds": range(max(1, run.rounds - MAX_ROUNDS + 1), run.rounds + 1),
        "backbones": list(Backbone.objects.all()),
        "chosen": {name: values.get(name, "") for name in ("backbone", "backbone_model")},
    }
    return render(request, "runs/steering/fork.html", context, status=422 if form.is_bound else 200)
