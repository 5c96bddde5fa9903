"""Imports: bundles, published transcripts and labels of other methods, one file or several, brought by a researcher."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from experiments.core import access, notify, worker_status
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.bodies import UPLOAD
from experiments.core.errors import InvalidInput
from experiments.exchange import actions, form
from experiments.models import Import, VisionModelRow
from experiments.models.exchange import ImportKind
from experiments.models.member import Role

SHOWN, LINKS = 100, 12


@require_safe
def page(request: HtmxRequest) -> HttpResponse:
    """The forms and the latest imports; the list alone for htmx."""
    user = access.require(request, Role.RESEARCHER)
    if request.htmx.target == "import-list":
        return render(request, "exchange/imports/list.html", list_imports())
    return render(request, "exchange/imports/page.html", build_context(user, {}))


def build_context(user: User, told: dict[str, Any]) -> dict[str, Any]:
    """All that the page shows; `told` is what was typed, and what is wrong with it. Admins choose an owner."""
    models = VisionModelRow.objects.filter(layers__isnull=False).distinct().values_list("name", flat=True)
    owners = list(form.owners().exclude(pk=user.pk)) if access.role_of(user) == Role.ADMIN else []
    return {"models": list(models), "most": UPLOAD, "owners": owners, "many": form.AT_ONCE, **told, **list_imports()}


def list_imports() -> dict[str, Any]:
    """The team's imports, with the runs that came of them."""
    rows = list(Import.objects.select_related("job__asked_by").prefetch_related("imported_runs")[:SHOWN])
    return {
        "imports": [(row, notify.read_progress(row.job), row.imported_runs.all()[:LINKS]) for row in rows],
        "moving": any(row.job.is_moving for row in rows),
        "worker": worker_status.is_here(),
    }


@require_POST
def bring(request: HttpRequest) -> HttpResponse:
    """Have a worker read files, each by itself."""
    actor = Actor.of(request, Role.RESEARCHER)
    kind = request.POST.get("kind", "")
    names = form.FIELDS[ImportKind(kind)] if kind in ImportKind.values else ()
    typed = {name: request.POST.get(name, "").strip() for name in names}
    try:
        brought = actions.bring_files(actor, kind, typed, request.FILES.getlist("file"))
    except InvalidInput as refused:
        told = {"problem": str(refused), "typed": typed, "problem_kind": kind if names else ""}
        return render(request, "exchange/imports/page.html", build_context(actor.person, told), status=400)
    for name, why in brought.left_out:
        messages.warning(request, f"{name} is left out. {why}")
    return redirect("imports")
