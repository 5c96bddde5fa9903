"""Pages of circuits: the list, one circuit, its file; adding chosen units, renaming, removing, deleting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from experiments.circuits import actions, compare, graph, graph_actions, lists, runs
from experiments.circuits.forms import ChangeCircuit, ChooseDataset, CompareCircuits, ImportCircuit, MeasureGraph
from experiments.circuits.members import draft_places, find_network
from experiments.core import access, worker_status
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.errors import InvalidInput
from experiments.core.paging import Page
from experiments.core.params import parse_key
from experiments.core.system_names import SystemNameMasker
from experiments.display.form_fields import add_refusal
from experiments.display.narrowing import list_fields
from experiments.models import Circuit, Dataset, Layer, VisionModelRow
from experiments.runs.filter_words import describe_filter
from experiments.units.chosen import ChooseTarget, put_together, read_places
from experiments.units.tiles import read_tiles
from workers.record.circuits import MAX_MEMBERS

PAGE_SIZE = 50
PAGE = "circuits/circuit.html"


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Show the circuits that the query selects, newest first."""
    names = SystemNameMasker(access.require(request))
    found = lists.circuits_from(request.GET.dict())
    page = Page.of(request.GET.dict(), found.rows.count(), PAGE_SIZE, *lists.FILTERS)
    context = {
        "found": found,
        "fields": list_fields(lists.FILTERS, found.values, names),
        "words": describe_filter("circuits", found.values),
        "rows": lists.draw_rows(found.rows[page.start : page.end], names),
        "page": page,
        "form": ImportCircuit() if (access.role_in(request) or 0) >= actions.CHANGES else None,
        "breadcrumbs": [("Units", reverse("units")), ("Circuits", reverse("circuits"))],
    }
    return render(request, "circuits/index.html", context)


@require_safe
def circuit(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show members by layer, their graph, and a table; htmx gets the graph alone, while a worker measures it."""
    access.require(request)
    # htmx polls for the graph only, which takes as much of the context.
    template = "circuits/graph.html" if request.htmx.target == graph.SECTION else PAGE
    return render_circuit(request, get_object_or_404(lists.list_circuits(), pk=pk), template=template)


def render_circuit(
    request: HttpRequest,
    row: Circuit,
    *,
    status: int = 200,
    form: ChangeCircuit | None = None,
    graph_form: MeasureGraph | None = None,
    problem: str = "",
    template: str = PAGE,
) -> HttpResponse:
    """Render the page, with a refused form if there is one."""
    user = access.require(request)
    members = lists.view_members(row, SystemNameMasker(user))
    role = access.role_in(request) or 0
    may_ask, asked = role >= actions.CHANGES, request.GET.get("graph", "")
    may_measure = role >= graph_actions.ASKS
    datasets, others = list(Dataset.objects.filter(available=True)), compare.list_others(row)
    context: dict[str, Any] = runs.describe_study(row.network, runs.number_of(row), row, request.GET.get("check", ""))
    context |= {
        "circuit": row,
        "graph": graph.read_section(row, members, asked, may_ask=may_measure, form=graph_form or MeasureGraph()),
        "worker": worker_status.has_worker(),
        "compare_form": CompareCircuits(others, row, is_fixed=True) if others else None,
        "members": members,
        "columns": lists.group_by_layer(row, members),
        "may_ask": may_ask,
        "exemplars_form": ChooseDataset(auto_id="exemplars-%s").offer(row, datasets) if datasets else None,
        "may_change": may_ask and access.may_change(user, row.owner_id),
        "is_here": VisionModelRow.objects.filter(name=row.network).exists(),
        "form": form or ChangeCircuit(initial={"name": row.name, "note": row.note}),
        "problem": problem,
        "breadcrumbs": [
            ("Units", reverse("units")),
            ("Circuits", reverse("circuits")),
            (row.name, row.get_absolute_url()),
        ],
    }
    return render(request, template, context, status=status)


@require_safe
def export(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the circuit as a JSON file, which the API accepts."""
    names = SystemNameMasker(access.require(request))
    row = get_object_or_404(Circuit, pk=pk)
    document = lists.describe_circuit(row, lists.view_members(row, names))
    # Indented and with plain letters, because people edit and compare these files.
    answer = JsonResponse(document, json_dumps_params={"indent": 2, "ensure_ascii": False})
    answer["Content-Disposition"] = f'attachment; filename="circuit-{row.pk}.json"'
    return answer


# --- actions ---


@require_POST
def add(request: HttpRequest) -> HttpResponse:
    """Ask which circuit the chosen units go to; with a name or a circuit, add them there."""
    actor = Actor.of(request, actions.CHANGES)
    places = read_places(request.POST)
    try:
        row = _put_together(request, actor, places)
    except InvalidInput as refusal:
        return _render_add(request, actor, places, refusal)
    return redirect(row) if row else _render_add(request, actor, places)


def _put_together(request: HttpRequest, actor: Actor, places: list[tuple[Layer, int]]) -> Circuit | None:
    """Return the circuit that now has these members; None if the form does not say which."""
    drafts = draft_places(places)
    return put_together(
        request,
        actions.TARGET,
        Circuit,
        len(drafts),
        lambda name: actions.create_circuit(actor, name, drafts),
        lambda pk: actions.add_members(actor, pk, drafts),
    )


def _render_add(
    request: HttpRequest, actor: Actor, places: list[tuple[Layer, int]], refusal: InvalidInput | None = None
) -> HttpResponse:
    """Show the chosen units, each of which can be left out, and the circuits for them."""
    shown = places[:MAX_MEMBERS]
    # Units of several networks fit no circuit: the page names the networks.
    networks = {find_network(layer.model) for layer, _ in shown}
    form = ChooseTarget(actions.TARGET, lists.list_circuits_for(actor.person, actor.role, networks), request.POST)
    if refusal:
        add_refusal(form, refusal)
    context = {
        "tiles": read_tiles(shown, SystemNameMasker(actor.user)),
        "count": len(places),
        "networks": sorted(networks),
        "most": MAX_MEMBERS,
        "form": form,
        "target": actions.TARGET,
        "breadcrumbs": [("Units", reverse("units")), ("Circuits", reverse("circuits")), ("Add", "")],
    }
    return render(request, "circuits/add.html", context, status=400 if refusal else 200)


@require_POST
def rename(request: HttpRequest, pk: int) -> HttpResponse:
    """Change the name or note."""
    actor = Actor.of(request, actions.CHANGES)
    typed = {field: request.POST.get(field, "") for field in ("name", "note")}
    return _change(
        request, pk, lambda: actions.rename_circuit(actor, pk, typed["name"], typed["note"]), ChangeCircuit(typed)
    )


@require_POST
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Remove the members that are ticked."""
    actor = Actor.of(request, actions.CHANGES)
    # Unreadable keys match no member.
    chosen = {parse_key(each) for each in request.POST.getlist("member")}
    return _change(request, pk, lambda: actions.remove_members(actor, pk, chosen))


def _change(
    request: HttpRequest, pk: int, act: Callable[[], object], form: ChangeCircuit | None = None
) -> HttpResponse:
    """Change the circuit; if refused, show the page again with the reason and the input."""
    row = get_object_or_404(lists.list_circuits(), pk=pk)
    try:
        act()
    except InvalidInput as refusal:
        # A refused removal has no field that the message could stand at.
        if form is None:
            return render_circuit(request, row, problem=str(refusal), status=400)
        add_refusal(form, refusal)
        return render_circuit(request, row, form=form, status=400)
    return redirect(row)


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a circuit; its units stay."""
    actor = Actor.of(request, actions.CHANGES)
    row = get_object_or_404(Circuit, pk=pk)
    actions.delete_circuit(actor, pk)
    messages.success(request, f"Deleted “{row.name}”. Its units and their labels are as they were.")
    return redirect("circuits")
