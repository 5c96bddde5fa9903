"""The list of runs, and the pulse of the installation at the foot of the rail."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from experiments import access, live
from experiments.models import Model, Run
from experiments.models.run import ACTIVE, Status

PER_PAGE = 50


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """All runs, newest first, by status and words; the list alone for htmx."""
    access.require(request)
    status, words = request.GET.get("status", ""), request.GET.get("q", "").strip()[:200]
    page = Paginator(chosen(status, words), PER_PAGE).get_page(request.GET.get("page"))
    context: dict[str, Any] = {
        "page": page,
        "status": status,
        "words": words,
        "statuses": Status.choices,
        "moving": any(run.status in ACTIVE for run in page),
        "any": bool(page.paginator.count) or Run.objects.exists(),
    }
    return render(request, "runs/list.html" if request.headers.get("HX-Request") else "runs.html", context)


def chosen(status: str, words: str) -> QuerySet[Run]:
    """Runs in this status ("active" for queued and running) whose question, system or labels hold these words."""
    runs = Run.objects.select_related("owner")
    if status == "active":
        runs = runs.filter(status__in=ACTIVE)
    elif status in Status.values:
        runs = runs.filter(status=status)
    for word in words.split()[:10]:
        runs = runs.filter(
            Q(question__icontains=word)
            | Q(model__icontains=word)
            | Q(layer__icontains=word)
            | Q(pk__in=Run.objects.filter(label_set__text__icontains=word).values("pk"))
            | (Q(unit=int(word)) if word.isascii() and word.isdigit() and len(word) < 9 else Q())
        )
    return runs


@require_safe
def pulse(request: HttpRequest) -> HttpResponse:
    """How many runs are alive and whether a worker is there; asked by every open page now and then."""
    access.require(request)
    models = list(Model.objects.values_list("name", flat=True))
    return render(request, "pieces/pulse.html", {"worker": live.reported("worker"), "models": models})
