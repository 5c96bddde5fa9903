"""Pages on what is known of a circuit: requesting its exemplars, importing a file, members without a circuit."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from experiments.circuits import actions, lists, runs
from experiments.circuits.files import MAX_BYTES, read_circuit_file
from experiments.core import access
from experiments.core.actors import Actor
from experiments.core.errors import InvalidInput, StateConflict
from experiments.models import Circuit
from workers.record.circuits import decode_members


@require_safe
def studied(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """Show members that were asked about: their circuit, else what is known of them."""
    access.require(request)
    unit = runs.find_studied(name, number)
    if unit is None:
        raise Http404(f"No circuit of {name} was studied under the number {number}.")
    members = decode_members(unit.members or ())
    # A circuit with these members has a page that shows all this and more.
    if row := lists.find_with_members(name, members):
        return redirect(row)
    context = {
        "members": members,
        "may_ask": False,
        "breadcrumbs": [("Units", reverse("units")), ("Circuits", reverse("circuits")), (str(unit), "")],
        **runs.describe_study(name, number, None, request.GET.get("check", "")),
    }
    return render(request, "circuits/studied.html", context)


@require_POST
def exemplars(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask a worker to find the exemplars of a circuit."""
    actor = Actor.of(request, actions.CHANGES)
    row = get_object_or_404(Circuit, pk=pk)
    try:
        runs.ask_for_exemplars(actor, row, request.POST.get("dataset", ""))
    except StateConflict as refusal:
        messages.error(request, str(refusal))
    return redirect(f"{row.get_absolute_url()}#exemplars")


@require_POST
def bring(request: HttpRequest) -> HttpResponse:
    """Create a circuit from a file; an invalid one leaves nothing behind."""
    actor = Actor.of(request, actions.CHANGES)
    file = request.FILES.get("file")
    try:
        # One byte more than allowed tells that the file is too long, without reading all of it.
        draft = read_circuit_file(file.read(MAX_BYTES + 1) if file else b"")
        row = actions.create_circuit(actor, draft.name, draft.members, draft.note, draft.network)
    except InvalidInput as refusal:
        messages.error(request, f"Nothing was created. {refusal}")
        return redirect("circuits")
    messages.success(request, f"Created “{row.name}”.")
    return redirect(row)
