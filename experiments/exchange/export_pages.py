"""Exports: files of runs, experiments, observations and labels that a member asked for."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from experiments.core import access, notify, worker_status
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.errors import InvalidInput
from experiments.exchange import actions, export_query
from experiments.exchange.downloads import own_exports, send_file
from experiments.exchange.safe_zip import ExchangeError
from experiments.models.exchange import NOUNS, ExportSubject, Format

SHOWN = 50


@require_safe
def page(request: HtmxRequest) -> HttpResponse:
    """The form, filled in from the address, and the person's own exports; the list alone for htmx."""
    user = access.require(request)
    if request.htmx.target == "export-list":
        return render(request, "exchange/exports/list.html", list_own(user))
    asked = request.GET.copy()
    what, form = asked.pop("what", [ExportSubject.RUNS])[-1], asked.pop("format", [Format.CSV])[-1]
    return render_page(request, user, str(what), str(form), asked.urlencode())


def render_page(request: HttpRequest, user: User, what: str, form: str, query: str, problem: str = "") -> HttpResponse:
    """The page with these choices, and how much they would hold."""
    what = what if what in ExportSubject.values else ExportSubject.RUNS
    form = form if form in Format.values and form != Format.ZIP else Format.CSV
    count = None
    try:
        count = export_query.select_rows(ExportSubject(what), query, user).count()
    except ExchangeError as error:
        problem = problem or str(error)
    context = {
        "what": what,
        "whats": [
            (key, label, ", ".join(sorted(export_query.KNOWN[ExportSubject(key)])))
            for key, label in ExportSubject.choices
        ],
        "form": form,
        "formats": [choice for choice in Format.choices if choice[0] != Format.ZIP],
        "query": query,
        "parts": [
            pair
            for pair in QueryDict(query[: actions.QUERY_CHARS]).items()
            if pair[0] not in export_query.LOOKS and pair[1]
        ],
        "count": count,
        "noun": NOUNS[ExportSubject(what)],
        "problem": problem,
    }
    return render(request, "exchange/exports/page.html", context | list_own(user), status=400 if problem else 200)


def list_own(user: User) -> dict[str, Any]:
    """The person's exports, and how far a worker is with each."""
    rows = list(own_exports(user)[:SHOWN])
    return {
        "exports": [(row, notify.read_progress(row.job)) for row in rows],
        "moving": any(row.job.is_moving for row in rows),
        "worker": worker_status.is_here(),
        "now": timezone.now(),
    }


@require_POST
def make(request: HttpRequest) -> HttpResponse:
    """Have a worker write a file."""
    actor = Actor.of(request)
    what, form, query = (request.POST.get(name, "").strip() for name in ("what", "format", "query"))
    try:
        actions.make_export(actor, what, form, query)
    except InvalidInput as refused:
        return render_page(request, actor.person, what, form, query, str(refused))
    return redirect("exports")


@require_safe
def file(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The file, for whoever asked for it. Raises Http404 if it is not there (yet, or any more)."""
    return send_file(request, get_object_or_404(own_exports(access.require(request)), pk=pk))


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Remove a file; one that is being written is stopped first, and gone once it has been."""
    actor = Actor.of(request)
    actions.discard_export(actor, get_object_or_404(own_exports(actor.person), pk=pk))
    return redirect("exports")
