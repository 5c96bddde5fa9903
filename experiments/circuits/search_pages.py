"""Pages of searches for circuits: the form with earlier searches, one search, creating a circuit from its result."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from experiments.circuits import actions, searches
from experiments.circuits.forms import FindCircuit, KeepFound
from experiments.core import access, notify, worker_status
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.errors import InvalidInput
from experiments.core.paging import Page
from experiments.core.params import clean_text, parse_key, parse_number
from experiments.core.system_names import SystemNameMasker
from experiments.display.form_fields import add_refusal
from experiments.models import CircuitSearch, Dataset, Layer

PAGE_SIZE = 50
TYPED = 500
FIELDS = {"layer": "", "target": "", "dataset": "", "images": "100", "seeds": "3"}
"""Initial values of the form."""
CRUMBS = (("Units", "units"), ("Circuits", "circuits"), ("Find", "circuit-searches"))


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Show the form and earlier searches."""
    access.require(request)
    typed = {name: clean_text(request.GET.get(name, ""), TYPED) or usual for name, usual in FIELDS.items()}
    return _render_searches(request, FindCircuit(initial=typed))


@require_POST
def ask(request: HttpRequest) -> HttpResponse:
    """Ask a worker to find a circuit; if refused, show the form again with the input."""
    actor = Actor.of(request, actions.CHANGES)
    typed = {name: clean_text(request.POST.get(name, ""), TYPED) for name in FIELDS}
    try:
        layer = Layer.objects.select_related("model").filter(pk=parse_key(typed["layer"])).first()
        if layer is None:
            raise InvalidInput("Choose a layer.", "layer")
        # The action checks ranges; here only that they are numbers.
        images, seeds = (_read_count(name, typed[name]) for name in ("images", "seeds"))
        question = searches.CircuitQuestion(typed["target"], images, seeds)
        dataset = searches.find_dataset(layer, typed["dataset"])
        return redirect(actions.search_circuit(actor, layer, dataset, question))
    except InvalidInput as refusal:
        form = FindCircuit(request.POST)
        add_refusal(form, refusal)
        return _render_searches(request, form, status=400)


def _read_count(noun: str, text: str, field: str = "") -> int:
    found = parse_number(text)
    if found is None:
        raise InvalidInput(f"Write the number of {noun} as a whole number.", field or noun)
    return found


def _render_searches(request: HttpRequest, form: FindCircuit, status: int = 200) -> HttpResponse:
    rows = searches.list_searches()
    page, layers = Page.of(request.GET.dict(), rows.count(), PAGE_SIZE), searches.list_layers()
    context = {
        "rows": rows[page.start : page.end],
        "page": page,
        # `broken` lists unreadable images, which may be long.
        "form": form.offer(layers, Dataset.objects.filter(available=True).defer("broken")),
        "layers": layers,
        "classes": searches.list_classes(),
        "may_ask": (access.role_in(request) or 0) >= actions.CHANGES,
        "breadcrumbs": _list_breadcrumbs(),
    }
    return render(request, "circuits/searches.html", context, status=status)


def _list_breadcrumbs() -> list[tuple[str, str]]:
    return [(words, reverse(name)) for words, name in CRUMBS]


@require_safe
def search(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the result; htmx gets that part, while a worker measures."""
    access.require(request)
    return _render_search(request, get_object_or_404(searches.list_searches(), pk=pk))


def _render_search(
    request: HtmxRequest, row: CircuitSearch, form: KeepFound | None = None, status: int = 200
) -> HttpResponse:
    may_ask = (access.role_in(request) or 0) >= actions.CHANGES
    drawn = searches.draw_search(row, SystemNameMasker(access.require(request)))
    context = {
        "search": row,
        "drawn": drawn,
        "may_ask": may_ask,
        "may_stop": may_ask,
        "worker": worker_status.has_worker(),
        "form": form or KeepFound(initial={"name": row.target, "count": drawn.kept if drawn else 0}),
        "breadcrumbs": [*_list_breadcrumbs(), (str(row), row.get_absolute_url())],
        "progress": notify.read_progress(row.job),
    }
    # htmx polls for the result only.
    template = "circuits/found.html" if request.htmx.target == "found" else "circuits/search.html"
    return render(request, template, context, status=status)


@require_POST
def keep(request: HtmxRequest, pk: int) -> HttpResponse:
    """Create a circuit of the user's own from the strongest members."""
    actor = Actor.of(request, actions.CHANGES)
    row = get_object_or_404(searches.list_searches(), pk=pk)
    name, count = request.POST.get("name", ""), request.POST.get("count", "")
    try:
        circuit = actions.keep_found(actor, row, name, _read_count("members", count, "count"))
    except InvalidInput as refusal:
        form = KeepFound(request.POST)
        add_refusal(form, refusal)
        return _render_search(request, row, form, status=400)
    messages.success(request, f"Created “{circuit.name}”.")
    return redirect(circuit)
