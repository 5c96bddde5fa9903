"""Units: the models there are, a model as layers of units, a layer, and the page of one unit."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.db.models import Count, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from experiments.core import access, audit
from experiments.core.audit import Verb
from experiments.core.system_names import Names
from experiments.models import Dataset, Layer, Run, Unit, VisionModelRow
from experiments.models.member import Role
from experiments.runs.asking import pages
from experiments.units import drawing, lists
from experiments.units.drawing import Wanted
from experiments.units.states import State, States, counted, states

LABELLED = (State.LIVE, State.CONCLUDED, State.LABELLED, State.OPEN)
"""States in which a list of units says more than their numbers."""


@dataclass(frozen=True)
class Legend:
    """A state in the legend: how many units are in it, and the address that shows or no longer shows them alone."""

    state: State
    count: int
    chosen: bool
    url: str


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """The models, and how much is known of each."""
    access.require(request)
    models = VisionModelRow.objects.annotate(layer_count=Count("layers"), units=Sum("layers__units")).order_by("pk")
    runs = dict(Run.objects.order_by().values_list("model").annotate(Count("unit")))
    pairs = (
        Unit.objects.filter(labels__isnull=False)
        .order_by()
        .values_list("layer__model")
        .annotate(Count("pk", distinct=True))
    )
    labelled = dict(pairs)
    rows = [
        {"model": model, "runs": runs.get(model.name, 0), "labelled": labelled.get(model.pk, 0)}
        for model in models
        if model.layer_count
    ]
    return render(request, "units/index.html", {"models": rows})


@require_safe
def model(request: HttpRequest, name: str) -> HttpResponse:
    """The network: every layer, every unit a square in the colour of its state."""
    names = Names(access.require(request))
    row = get_object_or_404(VisionModelRow, name=name)
    layers = list(row.layers.select_related("model"))
    context = seen(request, row, layers, names)
    drawings = drawing.network(layers, context["known"], context["wanted"])
    labels = lists.labelled({each.layer.pk: [cell.number for cell in each.cells] for each in drawings}, names)
    titles = {key: lists.shortened(texts) for key, texts in labels.items()}
    context |= {"drawings": drawings, "titles": titles, "crumbs": crumbs(row)}
    if context["found"] is not None:
        context["listed"] = lists.listed(context["found"], layers, names)
    return render(request, "units/model.html", context)


@require_safe
def layer(request: HttpRequest, name: str, layer_name: str) -> HttpResponse:
    """One layer: every unit a link."""
    names = Names(access.require(request))
    row = find_layer(name, layer_name)
    context = seen(request, row.model, [row], names)
    known, wanted = context["known"][row.pk], context["wanted"]
    asked = {number for number, state in known.items() if state in LABELLED and number < row.units}
    labels = lists.labelled({row.pk: asked}, names)
    titles = {number: lists.shortened(texts) for (_, number), texts in labels.items()}
    chosen = set(titles) if context["found"] is None else set(context["found"].get(row.pk, ()))
    chosen = {number for number in chosen if wanted.has(row.pk, number, known.get(number, State.NEW))}
    context |= {
        "layer": row,
        "links": drawing.links(row, known, wanted, titles),
        "listed": lists.listed({row.pk: chosen}, [row], names),
        "chosen": len(chosen),
        "crumbs": crumbs(row.model, row),
    }
    return render(request, "units/layer.html", context)


def seen(request: HttpRequest, row: VisionModelRow, layers: Sequence[Layer], names: Names) -> dict[str, Any]:
    """What the pages of a model and of a layer share: states, legend, filter and search."""
    typed = request.GET.get("q", "").strip()[: lists.LONGEST]
    asked = request.GET.get("state", "")
    state = State(asked) if asked in {each.value for each in State} else None
    known = states(row, layers, names)
    found = lists.find(typed, layers, names) if typed else None
    return {
        "model": row,
        "layers": layers,
        "known": known,
        "found": found,
        "found_count": sum(len(numbers) for numbers in (found or {}).values()),
        "wanted": Wanted(state, found),
        "typed": typed,
        "state": state,
        "no_state": asked if asked and state is None else "",
        "legend": legend(request, layers, known, state),
    }


def legend(request: HttpRequest, layers: Sequence[Layer], known: States, state: State | None) -> list[Legend]:
    counts = counted(layers, known)
    entries = []
    for each in State:
        address = request.GET.copy()
        address.pop("state", None)
        if each != state:
            address["state"] = each.value
        entries.append(Legend(each, counts[each], each == state, f"?{address.urlencode()}"))
    return entries


def crumbs(row: VisionModelRow, layer: Layer | None = None, number: int | None = None) -> list[tuple[str, str]]:
    found = [("Units", reverse("units")), (row.name, reverse("units-model", args=[row.name]))]
    if layer:
        found.append((layer.name, reverse("units-layer", args=[row.name, layer.name])))
    if layer and number is not None:
        found.append((f"Unit {number}", reverse("unit", args=[row.name, layer.name, number])))
    return found


def find_layer(name: str, layer_name: str, number: int = 0) -> Layer:
    """The layer with its model. Raises Http404, with what there is, if there is none or it has no such unit."""
    row = Layer.objects.select_related("model").filter(model__name=name, name=layer_name).first()
    if row is None:
        raise Http404(f"{name} has no layer {layer_name} here.")
    if number >= row.units:
        raise Http404(f"{layer_name} of {name} has units 0 to {row.units - 1}.")
    return row


@require_safe
@never_cache
def random(request: HttpRequest, name: str, layer_name: str) -> HttpResponse:
    """Some unit of the layer that has no label, was not asked about and is not known to be dead."""
    names = Names(access.require(request))
    row = find_layer(name, layer_name)
    known = states(row.model, [row], names)[row.pk]
    left = [number for number in range(row.units) if number not in known]
    if not left:
        messages.info(request, f"Every unit of {row.name} that is active has been asked about or has a label.")
        return redirect("units-layer", name, layer_name)
    return redirect("unit", name, layer_name, secrets.choice(left))


@require_POST
@transaction.atomic
def exemplars(request: HttpRequest, name: str, layer_name: str, number: int) -> HttpResponse:
    """Have a worker find the exemplars of a unit, or try again; it indexes the layer first if nobody has yet."""
    access.require(request, Role.RESEARCHER)
    row = find_layer(name, layer_name, number)
    dataset = get_object_or_404(Dataset, key=request.POST.get("dataset", ""), available=True)
    profile = pages.profiled(row, number, dataset, again=True)["profile"]
    audit.record(request, Verb.EXEMPLARS_ASKED, profile.unit, dataset=dataset.key)
    address = reverse("unit", args=[name, layer_name, number])
    return redirect(f"{address}?{request.GET.urlencode()}" if request.GET else address)
