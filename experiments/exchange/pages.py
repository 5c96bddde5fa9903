"""Pages of exports (files of the current member) and of imports (bundles, MAIA transcripts, labels of other
methods)."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from experiments.core import access, notify, worker_status
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.errors import InvalidInput
from experiments.display.form_fields import add_refusal
from experiments.exchange import actions, export_query, form, label_tests
from experiments.exchange.downloads import list_own_exports, send_file
from experiments.exchange.export_words import ExportForm, describe_query
from experiments.exchange.formats.format_words import FORMAT_WORDS
from experiments.exchange.safe_zip import ExchangeError
from experiments.models import Import, Role, SavedView, ViewedList, VisionModelRow
from experiments.models.exchange import NOUNS, ExportSubject, Format, ImportKind, list_formats
from experiments.runs.saved_views.actions import list_views

_VIEWS = {
    ExportSubject.BUNDLE: ViewedList.RUNS,
    ExportSubject.RUNS: ViewedList.RUNS,
    ExportSubject.EXPERIMENTS: ViewedList.EXPERIMENTS,
    ExportSubject.OBSERVATIONS: ViewedList.EXPERIMENTS,
    ExportSubject.EVALUATIONS: ViewedList.EVALUATIONS,
    ExportSubject.QUEUES: ViewedList.REVIEW,
    ExportSubject.TRIALS: ViewedList.PAIRWISE,
    ExportSubject.SWEEPS: ViewedList.SWEEPS,
}
"""The list whose saved views can select the exported rows."""
MAX_EXPORTS, MAX_IMPORTS, MAX_RUNS = 50, 100, 12
"""Maximum number of exports and imports listed, and of runs per import."""


@require_safe
def exports(request: HtmxRequest) -> HttpResponse:
    """Show the form, filled in from the address, and the person's own exports; for htmx only the list."""
    user = access.require(request)
    if request.htmx.target == "export-list":
        return render(request, "exchange/exports/list.html", list_exports(user))
    asked = request.GET.copy()
    what, ending = asked.pop("what", [ExportSubject.RUNS])[-1], asked.pop("format", [Format.CSV])[-1]
    return _show_exports(request, user, str(what), str(ending), asked.urlencode())


def _show_exports(
    request: HttpRequest, user: User, what: str, ending: str, query: str, problem: str = ""
) -> HttpResponse:
    """Render the page with these choices and the number of matching rows."""
    what = what if what in ExportSubject.values else ExportSubject.RUNS
    formats = list_formats(what)
    ending = ending if ending in formats else formats[0]
    count = None
    try:
        count = export_query.select_rows(ExportSubject(what), query, user).count()
    except ExchangeError as error:
        problem = problem or str(error)
    context = {
        "what": what,
        "form": ExportForm(ExportSubject(what), ending, query[: actions.QUERY_CHARS]),
        "format": ending,
        "about_format": FORMAT_WORDS.get(ending, ""),
        "words": describe_query(what, query[: actions.QUERY_CHARS]),
        "views": _list_views(user, ExportSubject(what)),
        "count": count,
        "noun": NOUNS[ExportSubject(what)],
        "problem": problem,
    }
    return render(request, "exchange/exports/page.html", context | list_exports(user), status=400 if problem else 200)


def _list_views(user: User, what: ExportSubject) -> list[SavedView]:
    """Return the saved views that select such rows."""
    of = _VIEWS.get(what)
    return list(list_views(user, of)) if of else []


def _read_fields(request: HttpRequest, what: str) -> str:
    """Return the filter of the submitted fields as a query string."""
    names = export_query.KNOWN[ExportSubject(what)] if what in ExportSubject.values else ()
    return urlencode({name: text for name in sorted(names) if (text := request.POST.get(name, "").strip())})


def list_exports(user: User) -> dict[str, Any]:
    """Return the person's exports with their progress."""
    rows = list(list_own_exports(user)[:MAX_EXPORTS])
    return {
        "exports": [(row, notify.read_progress(row.job)) for row in rows],
        "moving": any(row.job.is_moving for row in rows),
        "worker": worker_status.has_worker(),
        "now": timezone.now(),
    }


@require_POST
def make_export(request: HttpRequest) -> HttpResponse:
    """Start an export."""
    actor = Actor.of(request)
    what, ending = (request.POST.get(name, "").strip() for name in ("what", "format"))
    query = request.POST.get("query", "").strip() if "query" in request.POST else _read_fields(request, what)
    try:
        actions.make_export(actor, what, ending, query)
    except InvalidInput as refused:
        return _show_exports(request, actor.person, what, ending, query, str(refused))
    return redirect("exports")


@require_safe
def export_file(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Send the file to the person who created the export. Raises Http404 if it is not ready or has expired."""
    return send_file(request, get_object_or_404(list_own_exports(access.require(request)), pk=pk))


@require_POST
def delete_export(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete an export. A running one is stopped first and disappears after that."""
    actor = Actor.of(request)
    actions.discard_export(actor, get_object_or_404(list_own_exports(actor.person), pk=pk))
    return redirect("exports")


# --- imports ---


@require_safe
def imports(request: HtmxRequest) -> HttpResponse:
    """Show the forms and the latest imports; for htmx only the list."""
    user = access.require(request, Role.RESEARCHER)
    if request.htmx.target == "import-list":
        return render(request, "exchange/imports/list.html", list_imports())
    return render(request, "exchange/imports/page.html", _fill_imports(user))


def _fill_imports(user: User, filled: form.ImportForm | None = None) -> dict[str, Any]:
    """Return the context of the page, with the refused form if there is one. Only admins may choose an owner."""
    rows = VisionModelRow.objects.filter(layers__isnull=False).distinct().values_list("name", flat=True)
    models, owners = list(rows), list(form.owners().exclude(pk=user.pk)) if access.role_of(user) == Role.ADMIN else []
    shown = {
        f"{kind}_form": (filled if isinstance(filled, each) else each(kind, user)).offer(models, owners)
        for kind, each in form.FORMS.items()
    }
    return {"models": models, "owners": owners, **shown, **list_imports()}


def list_imports() -> dict[str, Any]:
    """Return the team's imports with their runs."""
    rows = list(Import.objects.select_related("job__asked_by").prefetch_related("imported_runs")[:MAX_IMPORTS])
    tests = label_tests.offer_tests(rows)
    return {
        "imports": [
            (row, notify.read_progress(row.job), row.imported_runs.all()[:MAX_RUNS], tests.get(row.pk)) for row in rows
        ],
        "moving": any(row.job.is_moving for row in rows),
        "worker": worker_status.has_worker(),
    }


@require_POST
def bring(request: HttpRequest) -> HttpResponse:
    """Start one import per file."""
    actor = Actor.of(request, Role.RESEARCHER)
    kind = request.POST.get("kind", "")
    try:
        _, left_out = actions.bring_files(actor, kind, request.POST.dict(), request.FILES.getlist("file"))
    except InvalidInput as refused:
        return _refuse_import(request, actor.person, kind, refused)
    for name, why in left_out:
        messages.warning(request, f"{name} is left out. {why}")
    return redirect("imports")


def _refuse_import(request: HttpRequest, user: User, kind: str, refused: InvalidInput) -> HttpResponse:
    """Show the page with the refused form and the reason."""
    filled = None
    if kind in ImportKind.values:
        filled = form.fill_form(kind, user, request.POST.dict())
        if filled.is_valid():
            add_refusal(filled, refused)
    context = _fill_imports(user, filled) | {"problem": "" if filled else str(refused)}
    return render(request, "exchange/imports/page.html", context, status=400)
