"""Request the graph of a circuit on its page; compare two circuits."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from experiments.circuits import compare, graph_actions, lists
from experiments.circuits.forms import CompareCircuits, MeasureGraph
from experiments.circuits.graph_drawing import write_effect
from experiments.circuits.pages import render_circuit
from experiments.core import access
from experiments.core.actors import Actor
from experiments.core.errors import ActionRefused
from experiments.core.params import clean_text, parse_key
from experiments.core.system_names import SystemNameMasker
from experiments.display.form_fields import add_refusal
from experiments.models import Circuit

TYPED = 1_000
"""Maximum characters read of a field."""


@require_POST
def ask_for_graph(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask a worker to measure the graph; if refused, show the page again with the input."""
    actor = Actor.of(request, graph_actions.ASKS)
    row = get_object_or_404(lists.list_circuits(), pk=pk)
    typed = {name: clean_text(request.POST.get(name, ""), TYPED) for name in ("dataset", "target")}
    try:
        graph = graph_actions.ask_for_graph(actor, row, typed["dataset"], typed["target"])
    except ActionRefused as refusal:
        form = MeasureGraph(request.POST)
        add_refusal(form, refusal)
        return render_circuit(request, row, status=400, graph_form=form)
    return redirect(graph)


@require_safe
def compare_circuits(request: HttpRequest) -> HttpResponse:
    """Show two circuits by their keys, `a` and `b`; a form if either is missing."""
    names = SystemNameMasker(access.require(request))
    keys = [parse_key(request.GET.get(name)) for name in ("a", "b")]
    # A missing key shows the form; a key of no circuit is an error.
    first, second = (get_object_or_404(lists.list_circuits(), pk=key) if key else None for key in keys)
    choices = compare.list_others()
    context: dict[str, Any] = {
        "first": first,
        "second": second,
        "form": CompareCircuits(choices, first, second) if choices else None,
        "breadcrumbs": [
            ("Units", reverse("units")),
            ("Circuits", reverse("circuits")),
            ("Compare", reverse("circuits-compare")),
        ],
    }
    if first and second:
        context |= _describe(first, second, names)
    return render(request, "circuits/compare.html", context)


def _describe(first: Circuit, second: Circuit, names: SystemNameMasker) -> dict[str, Any]:
    found = compare.compare_circuits(first, second, names)

    def lines(members: Any) -> list[tuple[Any, str, str]]:
        return [
            (each.view, *(write_effect(effect) if effect else "" for effect in (each.first, each.second)))
            for each in members
        ]

    parts = [
        ("In both", lines(found.shared), (True, True)),
        (f"Only in {first.name}", lines(found.first_only), (True, False)),
        (f"Only in {second.name}", lines(found.second_only), (False, True)),
    ]
    return {"found": found, "parts": parts}
