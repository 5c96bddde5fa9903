"""Settings, models: what can be studied and with what, what is missing and how to get it; models of one's own."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from experiments.core import access, audit, notify, queue, worker_status
from experiments.core.access import HtmxRequest
from experiments.core.audit import Verb
from experiments.installation import job_pages
from experiments.models import Backbone, Layer, Toolset, VisionModelRow
from experiments.models.job import JobKind
from experiments.models.member import Role

LONGEST = 200
"""Characters of a model's name."""


@require_safe
def page(request: HtmxRequest) -> HttpResponse:
    """The page; htmx is sent the work under way, and the list once that is done."""
    role = access.role_of(access.require(request)) or Role.VIEWER
    fragment = request.htmx.target == "work"
    return render(request, "installation/work.html" if fragment else "installation/models.html", around(role))


def around(role: Role) -> dict[str, Any]:
    """All that the templates show."""
    models = list(
        VisionModelRow.objects.annotate(layer_count=Count("layers"), unit_count=Sum("layers__units")).order_by(
            "-available", "name"
        )
    )
    looking = notify.reported("catalogue")
    under_way = bool(looking and looking["done"] < looking["total"])
    told = job_pages.listed([JobKind.MODEL], role)
    return told | {
        "here": "settings-models",
        "list": "installation/models_list.html",
        "models": models,
        "backbones": list(Backbone.objects.all()),
        "prices": settings.OPENAI_PRICES,
        "toolsets": list(Toolset.objects.all()),
        "looking": looking if under_way else None,
        "moving": told["moving"] or under_way or not models,
        "worker": worker_status.is_here(),
        "may_add": role >= Role.ADMIN,
        "may_ask_work": role >= Role.RESEARCHER,
    }


@require_safe
def layers(request: HttpRequest, pk: int) -> HttpResponse:
    """The layers of one model, sent when somebody opens them."""
    access.require(request)
    model = get_object_or_404(VisionModelRow, pk=pk)
    found = Layer.objects.filter(model=model).defer("names")
    return render(request, "installation/layers.html", {"model": model, "layers": found})


@require_POST
def add(request: HttpRequest) -> HttpResponse:
    """Have a worker look at a model by hub id or folder; what comes of it stands on the page."""
    access.require(request, Role.ADMIN)
    name = request.POST.get("name", "").strip()
    if not 0 < len(name) <= LONGEST:
        problem = "Write a hub id such as hf:microsoft/resnet-50, or the path of a folder, in at most 200 characters."
        context = around(Role.ADMIN) | {"problem": problem, "typed": name}
        return render(request, "installation/models.html", context, status=400)
    job_pages.ask(request, JobKind.MODEL, name)
    return redirect("settings-models")


@require_POST
@transaction.atomic
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Take a model that somebody added off the list; its runs stay."""
    access.require(request, Role.ADMIN)
    model = get_object_or_404(VisionModelRow, pk=pk, added__isnull=False)
    take_off(request, model)
    return redirect("settings-models")


def take_off(request: HttpRequest, model: VisionModelRow) -> None:
    audit.record(request, Verb.MODEL_REMOVED, model)
    model.delete()


@require_POST
@transaction.atomic
def look(request: HttpRequest) -> HttpResponse:
    """Have a worker look at every plug-in again, as after weights were fetched."""
    access.require(request, Role.RESEARCHER)
    audit.record(request, Verb.CATALOGUE_ASKED)
    queue.ask_for_catalogue()
    notify.report("catalogue", "Waiting for a worker", 0, 1, seconds=30)
    return redirect("settings-models")
