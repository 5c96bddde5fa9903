"""Tags on experiments and images, put and taken off beside the comments on them."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from experiments.comments import anchors
from experiments.comments.pages import spot, told
from experiments.core import access, tagging
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.errors import InvalidInput
from experiments.display import window
from experiments.models import Run
from experiments.models.member import Role


@require_POST
def change(request: HtmxRequest, pk: int) -> HttpResponse:
    """Put a tag on what the form names, or take it off; the part of the page that the form stood in, as it is now."""
    run = access.get_run(request, pk, Role.RESEARCHER)
    try:
        anchor = anchors.read(run, request.POST)
        row = anchor.observation or anchor.experiment
        if row is None:
            raise anchors.Nowhere("Only experiments and images have tags here; a run has them on the Runs page.")
        change_tag = tagging.untag if request.POST.get("verb") == "remove" else tagging.tag
        change_tag(Actor.of(request, Role.RESEARCHER), row, request.POST.get("tag", ""))
    except (InvalidInput, anchors.Nowhere) as problem:
        return told(request, run, HttpResponse(status=204), str(problem), "error")
    if not request.htmx:
        messages.success(request, f"Changed the tags of {row}.")
        return redirect(run)
    return shown(request, run)


def shown(request: HttpRequest, run: Run) -> HttpResponse:
    event = get_object_or_404(run.events, seq=window.number(request.POST, "in"))
    about = {name: request.POST[name] for name in ("on", "experiment", "image") if request.POST.get(name)}
    return spot(request, run, event, about)
