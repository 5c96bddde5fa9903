"""Settings, datasets: what exemplars come from, what is indexed, what could not be read; datasets of one's own."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from experiments.core import access, audit, worker_status
from experiments.core.access import HtmxRequest
from experiments.core.audit import Verb
from experiments.installation import job_pages
from experiments.models import Dataset, Layer, LayerIndex, VisionModelRow
from experiments.models.job import JobKind
from experiments.models.member import Role

LONGEST_PLACE, LONGEST_NAME = 480, 200
BROKEN_SHOWN = 50
"""Files that could not be read which a page names; the rest is counted."""


@require_safe
def page(request: HtmxRequest) -> HttpResponse:
    """The page; htmx is sent the work under way with the list once that is done, or the layers of a chosen model."""
    role = access.role_of(access.require(request)) or Role.VIEWER
    templates = {"work": "installation/work.html", "index-layers": "installation/index_layers.html"}
    template = templates.get(request.htmx.target or "", "installation/datasets.html")
    return render(request, template, around(role, request.GET))


def around(role: Role, chosen: Any) -> dict[str, Any]:
    """All that the templates show; `chosen` is what the form for an index says, if anything."""
    made = LayerIndex.objects.select_related("layer__model").defer("layer__names")
    datasets = list(Dataset.objects.select_related("added_by").prefetch_related(Prefetch("indexes", queryset=made)))
    models = list(VisionModelRow.objects.filter(available=True))
    model = next((each for each in models if each.name == chosen.get("model")), next(iter(models), None))
    told = job_pages.listed([JobKind.DATASET, JobKind.INDEX], role)
    return told | {
        "moving": told["moving"] or not datasets,
        "here": "settings-datasets",
        "list": "installation/datasets_list.html",
        "datasets": [Shown(each) for each in datasets],
        "models": models,
        "model": model,
        "layers": list(model.layers.defer("names")) if model else [],
        "picked": chosen.getlist("layers") if hasattr(chosen, "getlist") else [],
        "chosen": chosen,
        "worker": worker_status.is_here(),
        "may_add": role >= Role.ADMIN,
        "may_index": role >= Role.RESEARCHER,
    }


class Shown:
    """A dataset as the list shows it: its indexed layers by model, the first of its broken files."""

    def __init__(self, row: Dataset) -> None:
        self.row = row
        self.indexed: dict[str, list[Layer]] = {}
        for index in row.indexes.all():
            self.indexed.setdefault(index.layer.model.name, []).append(index.layer)
        self.broken = row.broken[:BROKEN_SHOWN]
        self.more_broken = max(0, row.broken_count - len(self.broken))


@require_POST
def add(request: HttpRequest) -> HttpResponse:
    """Have a worker look at a place on its disks; what comes of it stands on the page."""
    access.require(request, Role.ADMIN)
    place, label = request.POST.get("place", "").strip(), request.POST.get("label", "").strip()
    if not 0 < len(place) <= LONGEST_PLACE or len(label) > LONGEST_NAME:
        problem = "Write the full path of a folder on the worker's machine, such as /data/photographs, in at most 480 "
        context = {"problem": f"{problem}characters, and a name in at most 200.", "typed": place, "typed_label": label}
        return render(request, "installation/datasets.html", around(Role.ADMIN, request.GET) | context, status=400)
    job_pages.ask(request, JobKind.DATASET, place, label=label)
    return redirect("settings-datasets")


@require_POST
@transaction.atomic
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Take a dataset that somebody added off the list; its images stay."""
    access.require(request, Role.ADMIN)
    dataset = get_object_or_404(Dataset, pk=pk, added__isnull=False)
    take_off(request, dataset)
    return redirect("settings-datasets")


def take_off(request: HttpRequest, dataset: Dataset) -> None:
    audit.record(request, Verb.DATASET_REMOVED, dataset)
    dataset.delete()


@require_POST
def index(request: HttpRequest) -> HttpResponse:
    """Have a worker measure all units of some layers over a dataset."""
    user = access.require(request, Role.RESEARCHER)
    key, name, layers = request.POST.get("dataset"), request.POST.get("model"), request.POST.getlist("layers")
    if problem := index_problem(key, name, layers):
        role = access.role_of(user) or Role.RESEARCHER
        context = around(role, request.POST) | {"index_problem": problem}
        return render(request, "installation/datasets.html", context, status=400)
    insist = {"insist": True} if request.POST.get("insist") else {}
    job_pages.ask(request, JobKind.INDEX, str(key), model=name, layers=layers, **insist)
    return redirect("settings-datasets")


def index_problem(key: str | None, name: str | None, layers: list[str]) -> str:
    """What is wrong with the choice; "" if nothing is."""
    if not Dataset.objects.filter(key=key, available=True).exists():
        return "Choose a dataset of the list that can be used."
    model = VisionModelRow.objects.filter(name=name, available=True).first()
    if model is None:
        return "Choose a model of the list that can be used."
    if not layers:
        return "Choose at least one layer."
    unknown = set(layers) - set(model.layers.values_list("name", flat=True))
    return f"{name} has no layer “{min(unknown)}”. Choose from its list." if unknown else ""
