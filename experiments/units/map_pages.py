"""Maps of units: a model as layers of squares, a layer as a sheet of tiles or a map; and actions on chosen units."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from experiments.core import access, notify, worker_status
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.errors import StateConflict
from experiments.core.paging import Page
from experiments.core.system_names import SystemNameMasker
from experiments.models import Dataset, Layer, Role, VisionModelRow
from experiments.units import actions, chosen, drawing, lists, sheet
from experiments.units.beside import key_of
from experiments.units.drawing import UnitSelection
from experiments.units.schemes import Colouring, colour_units, list_schemes, read_scheme
from experiments.units.sheet import SORTS, SheetFilter
from experiments.units.states import states
from experiments.units.tiles import make_tiles, read_layer_facts
from experiments.units.unit_ranges import format_ranges

PER_PAGE = 192
"""Tiles of one page of a sheet."""
KEPT = (*sheet.FILTERS, "sort")
"""Parameters that stay in the address from page to page."""
WORK = "layer-work"
"""The part of the page that waits for exemplars; htmx requests it by this id."""


@require_safe
def model(request: HttpRequest, name: str) -> HttpResponse:
    """Show the network: every layer, every unit a square in the colour of its state."""
    names = SystemNameMasker(access.require(request))
    row = get_object_or_404(VisionModelRow, name=name)
    layers = list(row.layers.select_related("model"))
    context = _read_map(request, row, layers, names)
    colouring: Colouring = context["colouring"]
    drawings = drawing.network(layers, colouring.known, context["wanted"], colouring.rest)
    labels = lists.find_labels({each.layer.pk: [number for number, _ in each.cells] for each in drawings}, names)
    titles = {key: lists.shorten_labels(texts) for key, texts in labels.items()}
    context |= {
        "drawings": [(each, each.links(titles)) for each in drawings],
        "layer_names": [each.name for each in layers],
        "breadcrumbs": lists.list_breadcrumbs(row),
    }
    # A search also lists its units with their labels, since squares have no room for text.
    if context["found"] is not None:
        context["listed"] = lists.list_units(context["found"], layers, names)
    return render(request, "units/model.html", context)


@require_safe
def layer(request: HtmxRequest, name: str, layer_name: str) -> HttpResponse:
    """Show one layer: a sheet of tiles, or a map of links; htmx gets the progress of its exemplars."""
    names = SystemNameMasker(access.require(request))
    row = lists.find_layer(name, layer_name)
    work = _read_work(request, row)
    if request.htmx.target == WORK:
        return render(request, "units/layer_work.html", work)
    context = _read_map(request, row.model, [row], names)
    colouring, base = context["colouring"], reverse("units-layer", args=[name, layer_name])
    facts, asked = read_layer_facts([row], names), SheetFilter.of(request.GET.dict())
    numbers = sheet.list_numbers(row, context["wanted"], colouring, facts, asked)
    by_map = request.GET.get("view") == "map"
    if by_map:
        titles = {number: label.text[: lists.SHORT] for (_, number), label in facts.labels.items()}
        meant = UnitSelection(found={row.pk: set(numbers)})
        context["links"] = drawing.links(row, colouring.known[row.pk], meant, titles, colouring.rest)
    else:
        page = Page.of(request.GET.dict(), len(numbers), PER_PAGE, *KEPT)
        tiles = make_tiles([(row, number) for number in numbers[page.start : page.end]], facts)
        context |= {"page": page, "tiles": sheet.draw_tiles(tiles, colouring, base)}
    context |= work | {
        "by_map": by_map,
        "asked": asked,
        "sorts": SORTS.items(),
        "count": len(numbers),
        "all_numbers": format_ranges(numbers),
        "is_filtered": len(numbers) < row.units,
        "tested": facts.tested,
        "beyond_chance": facts.beyond_chance,
        "repeats": facts.repeats,
        "place_key": key_of(row),
        "breadcrumbs": lists.list_breadcrumbs(row.model, row),
    }
    return render(request, "units/layer.html", context)


def _read_map(
    request: HttpRequest, row: VisionModelRow, layers: Sequence[Layer], names: SystemNameMasker
) -> dict[str, Any]:
    """Return what all maps share: colours, legend, filter and search."""
    asked = request.GET.get("state", "")
    colouring = colour_units(read_scheme(request.GET.get("colour", "")), row, layers, names)
    wanted = sheet.select_units(request.GET.dict(), layers, colouring, names)
    return {
        "model": row,
        "layers": layers,
        "colouring": colouring,
        "schemes": list_schemes(layers),
        "found": wanted.found,
        "found_count": sum(len(numbers) for numbers in (wanted.found or {}).values()),
        "wanted": wanted,
        "typed": request.GET.get("q", "").strip(),
        "state": wanted.state,
        # A colour of another scheme selects nothing here: the page says so.
        "no_state": asked if asked and wanted.state is None else "",
        "legend": sheet.list_legend(request.GET, layers, colouring, wanted),
    }


def _read_work(request: HttpRequest, row: Layer) -> dict[str, Any]:
    """Return how many units of the layer have exemplars over which dataset, and whether a worker computes them."""
    dataset = lists.choose_dataset(row) if row.takes_images else None
    job = actions.find_job(row, dataset.key) if dataset else None
    return {
        "layer": row,
        "model": row.model,
        "dataset": dataset,
        "job": job,
        "progress": notify.read_progress(job),
        "written": lists.count_measured(row, dataset) if dataset else 0,
        "may_ask": (access.role_in(request) or Role.VIEWER) >= Role.RESEARCHER,
        "worker": worker_status.has_worker(),
    }


# --- actions ---


@require_POST
def layer_exemplars(request: HttpRequest, name: str, layer_name: str) -> HttpResponse:
    """Ask a worker to write the exemplars of every unit of the layer."""
    actor = Actor.of(request, Role.RESEARCHER)
    row = lists.find_layer(name, layer_name)
    try:
        actions.ask_for_layer(actor, row, request.POST.get("dataset", ""))
    except StateConflict as refusal:
        messages.error(request, str(refusal))
    return redirect("units-layer", name, layer_name)


@require_POST
def choose(request: HttpRequest, name: str, layer_name: str) -> HttpResponse:
    """Compare the runs of chosen units, or queue them for review."""
    names = SystemNameMasker(access.require(request))
    row = lists.find_layer(name, layer_name)
    numbers = chosen.read_numbers(request.POST, row)
    comparing = request.POST.get("act") == "compare"
    try:
        runs = chosen.find_runs(row, numbers, names, most=chosen.COMPARED if comparing else chosen.QUEUED)
    except StateConflict as refusal:
        messages.warning(request, str(refusal))
        return redirect("units-layer", name, layer_name)
    if comparing:
        return redirect(f"{reverse('compare')}?{urlencode([('run', run) for run in runs])}")
    return redirect(f"{reverse('review-new')}?{urlencode({'run': ','.join(map(str, runs))})}")


@require_safe
@never_cache
def random(request: HttpRequest, name: str, layer_name: str) -> HttpResponse:
    """Open a random unit of the layer that has no label, was not asked about and is not known to be dead."""
    names = SystemNameMasker(access.require(request))
    row = lists.find_layer(name, layer_name)
    # States list only units that were asked about, have a label or are dead.
    known = states(row.model, [row], names)[row.pk]
    left = [number for number in range(row.units) if number not in known]
    if not left:
        messages.info(request, f"Every unit of {row.name} that is active has been asked about or has a label.")
        return redirect("units-layer", name, layer_name)
    # `secrets`, since `random` is the name of this view.
    return redirect("unit", name, layer_name, secrets.choice(left))


@require_POST
def exemplars(request: HttpRequest, name: str, layer_name: str, number: int) -> HttpResponse:
    """Ask a worker to find the exemplars of a unit, or to try again."""
    actor = Actor.of(request, Role.RESEARCHER)
    layer = lists.find_layer(name, layer_name, number)
    key = get_object_or_404(Dataset, key=request.POST.get("dataset", ""), available=True).key
    actions.ask_for_exemplars(actor, layer, number, key)
    address = reverse("unit", args=[name, layer_name, number])
    # The address keeps the dataset and label that the reader had chosen.
    return redirect(f"{address}?{request.GET.urlencode()}" if request.GET else address)
