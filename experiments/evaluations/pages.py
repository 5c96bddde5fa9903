"""Pages of evaluations: list, new, one evaluation, comparison, files."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from experiments.core import access, notify, worker_status
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.errors import ActionRefused, InvalidInput
from experiments.core.paging import Page
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display.form_fields import add_refusal
from experiments.evaluations import actions, drawing, files, lists, people, statements
from experiments.evaluations.comparison import compare as compare_evaluations
from experiments.evaluations.forecast import predict
from experiments.evaluations.form import NewEvaluation
from experiments.evaluations.form_page import draw_form
from experiments.evaluations.page_forms import (
    MAX_CHOICES,
    CompareLabels,
    RepairEvaluation,
    ResumeEvaluation,
    TwoEvaluations,
)
from experiments.evaluations.results import headline, name_scores, read_prepared, read_result
from experiments.label_checks.lists import place_of
from experiments.models import Evaluation, EvaluationItem, Role
from experiments.pairwise import of_evaluation, sources
from experiments.pairwise.actions import MANAGES, make_trial_of
from experiments.pairwise.lists import trials as list_trials
from experiments.sweeps import lists as sweeps
from workers.record.evaluation_kinds import KINDS
from workers.record.evaluations import CAVEAT

PER_PAGE, ITEMS_PER_PAGE = 30, 50
PROGRESS = "progress"
"""Id of the part of the page that htmx refreshes."""


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """List all evaluations, optionally of one kind, newest first."""
    access.require(request)
    found = lists.evaluations_from(request.GET)
    page = Page.of(request.GET, found.rows.count(), PER_PAGE, *lists.FILTERS)
    shown = list(found.rows[page.start : page.end])
    context = {
        "breadcrumbs": _list_breadcrumbs(),
        "rows": [(row, lists.state_of(row), headline(row)) for row in shown],
        "page": page,
        "found": found,
        "kinds": lists.FILTERS["kind"].choices,
        "any": bool(shown) or Evaluation.objects.exists(),
        "may_start": _may_start(request),
        "moving": any(row.job and row.job.is_moving for row in shown),
    }
    return render(request, "evaluations/index.html", context)


def _may_start(request: HttpRequest) -> bool:
    return (access.role_in(request) or Role.VIEWER) >= actions.STARTS


def _list_breadcrumbs(*more: tuple[str, str]) -> list[tuple[str, str]]:
    """Return the breadcrumbs."""
    return [("Evaluations", reverse("evaluations")), *more]


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """Show the form with its forecast, filled in from the address; on POST start the evaluation."""
    actor = Actor.of(request, actions.STARTS)
    sent = request.method == "POST"
    given = request.POST if sent else request.GET
    listed = sources.list_sources()
    # A `kind` alone only chooses the fields: there is nothing to check yet
    asked = sent or ("kind" in given and len(given) > 1)
    form = NewEvaluation(given, listed, untouched=not asked)
    if sent:
        # The form itself shows what is wrong.
        with suppress(ActionRefused):
            return redirect(actions.start(actor, form))
    kind = form.chosen_kind
    draft = form.draft() if form.is_valid() else None
    labels = None
    if draft and "source" in draft.row_of_kind.needs:
        labels = sum(each.labels for each in listed if each.key in draft.options.get("sources", ()))
    context = {
        "breadcrumbs": _list_breadcrumbs(("New evaluation", reverse("evaluation-new"))),
        "kinds": KINDS.values(),
        "kind": kind,
        "form": form,
        "draft": draft,
        "forecast": predict(draft, labels) if draft else None,
        "kept": [(name, value) for name, values in given.lists() if name in form.fields for value in values],
        "sources": listed,
        **(draw_form(form, kind) if kind else {}),
    }
    return render(request, "evaluations/new.html", context, status=400 if sent else 200)


@require_safe
def evaluation(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show state, figures, tables, plots and items. For htmx only the state and figures."""
    user = access.require(request)
    row = _find(pk)
    if request.htmx.target != PROGRESS:
        return _render_evaluation(request, pk)
    context = _read_progress(request, row) | {"swapped": True}
    context["result"] = read_result(row, lists.list_hidden(row, SystemNameMasker(user)))
    response = render(request, "evaluations/progress.html", context)
    if not context["state"].moving:
        response["HX-Refresh"] = "true"  # It has just ended: reload plots, tables and items
    return response


def _find(pk: int) -> Any:
    return get_object_or_404(lists.with_progress(Evaluation.objects.all()), pk=pk)


def _read_progress(request: HttpRequest, row: Any) -> dict[str, Any]:
    """Return the context of the state, which is also that of the head of the page."""
    # Hides buttons only; the actions check again
    may_change = _may_start(request) and access.may_change(access.require(request), row.owner_id)
    return {
        "row": row,
        "kind": row.row_of_kind,
        "state": lists.state_of(row),
        "progress": notify.read_progress(row.job),
        "worker": worker_status.has_worker(),
        "statuses": lists.count_by_status(row),
        "sweeps": sweeps.sweeps_from({"evaluation": str(row.pk)}).rows.order_by("pk"),
        "said": files.describe_progress(row),
        "may_change": may_change,
        "caveat": CAVEAT,
        "resume_form": ResumeEvaluation.of(row),
    }


def _render_evaluation(request: HttpRequest, pk: int, status: int = 200, **refused: forms.Form) -> HttpResponse:
    """Render the page, with a refused form if there is one, by its name in the template."""
    user, row = access.require(request), _find(pk)
    names = SystemNameMasker(user)
    # This one is B, the newer; the page offers what it is compared with.
    others = TwoEvaluations(initial={"b": pk})
    others.offer(Evaluation.objects.filter(kind=row.kind).exclude(pk=pk)[:MAX_CHOICES])
    others["a"].label = "With"
    context = _read_progress(request, row) | _read_found(row, names) | _read_items(request, row, names)
    context |= _read_trials(row, user) | _read_written(row, names)
    context |= {
        "breadcrumbs": _list_breadcrumbs((row.name, row.get_absolute_url())),
        "may_compare": (access.role_in(request) or Role.VIEWER) >= MANAGES,
        "may_write": _may_start(request),
        "others": others,
        "repair_form": RepairEvaluation(),
    }
    return render(request, "evaluations/page.html", context | refused, status=status)


def _read_found(row: Evaluation, names: SystemNameMasker) -> dict[str, Any]:
    """Return the result with drawn plots and a link for each cell."""
    result = read_result(row, lists.list_hidden(row, names))
    links = _link_items(row)

    def link(item: int | None) -> str:
        return links.get(item, "") if item is not None else ""

    # Statements are shown as cards instead of a table
    findings = statements.list_findings(row, result) if row.row_of_kind.states_biases else []
    tables = [
        (table, [[(cell, link(cell.item)) for cell in cells] for cells in table.rows])
        for table in (*result.tables, *read_prepared(row))
        if not (findings and table.key == statements.TABLE)
    ]
    drawings = [drawn for plot in result.plots if (drawn := drawing.draw_result(plot, link))]
    return {"result": result, "tables": tables, "drawings": drawings, "findings": findings}


def _read_trials(row: Evaluation, user: User) -> dict[str, Any]:
    """Return the trials of its labels, and the sources that another trial could compare."""
    return {"labels_form": CompareLabels(row), "trials": list_trials(user).filter(evaluation=row)}


def _read_written(row: Evaluation, names: SystemNameMasker) -> dict[str, Any]:
    """Return the items that people were asked to write, and their progress."""
    items = list(people.list_written(row))
    return {
        "written": [(item, lists.name_item(item, names)) for item in items],
        "written_done": sum(item.run is not None and item.run.has_ended for item in items),
    }


def _link_items(row: Evaluation) -> dict[int, str]:
    """Return a link to the check or else the run of each item."""
    links = {}
    for pk, check, run in visible_to(row.items.all()).values_list("pk", "label_check_id", "run_id"):
        if check or run:
            # The check shows more of a label than its run does.
            links[pk] = reverse("label-check", args=[check]) if check else reverse("run", args=[run])
    return links


def _read_items(request: HttpRequest, row: Any, names: SystemNameMasker) -> dict[str, Any]:
    items = lists.list_items(row, request.GET)
    page = Page.of(request.GET, items.count(), ITEMS_PER_PAGE, *lists.ITEM_FILTERS, "order")
    return {
        "items": [_describe_item(item, names) for item in items[page.start : page.end]],
        "page": page,
        "unread": lists.count_unread(row),
        "filters": [
            (name, each.label, lists.list_choices(row, name), request.GET.get(name, ""))
            for name, each in lists.ITEM_FILTERS.items()
        ],
        "order": request.GET.get("order", "worst"),
    }


def _describe_item(item: EvaluationItem, names: SystemNameMasker) -> dict[str, Any]:
    """Return an item with link and scores. Scores and group that reveal a hidden truth are left out."""
    place = place_of(item)
    hides = place is not None and names.masks_unit(*place)
    return {
        "item": item,
        "name": lists.name_item(item, names),
        "unit": reverse("unit", args=place) if place and not hides else "",
        "source": of_evaluation.name_source(item.source),
        "scores": {} if hides else name_scores(item.scores),
        "group": "" if hides or lists.is_being_written(item) else item.group,
    }


@require_safe
def file(request: HttpRequest, pk: int, end: str) -> HttpResponse:
    """Send the figures as a file. Raises Http404 for an unknown type."""
    user = access.require(request)
    row = get_object_or_404(lists.with_progress(Evaluation.objects.all()), pk=pk)
    if end not in files.FILES:
        raise Http404("Figures are written as csv, json or tex.")
    write, media_type = files.FILES[end]
    response = HttpResponse(write(row, SystemNameMasker(user)), content_type=f"{media_type}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="maia-evaluation-{pk}.{end}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """Compare two evaluations of one kind, `a` and `b` of the address; without them show a choice."""
    user = access.require(request)
    form = TwoEvaluations(request.GET)
    ready = form.is_valid()
    a, b = form.cleaned_data.get("a"), form.cleaned_data.get("b")
    offered = Evaluation.objects.filter(**({"kind": a.kind} if a else {}))[: 2 * MAX_CHOICES]
    form.offer(offered)
    context = {
        "breadcrumbs": _list_breadcrumbs(("Compare", reverse("evaluations-compare"))),
        "form": form,
        "offered": offered,
        "caveat": CAVEAT,
    }
    if a and b and ready:
        context["sides"] = [("A", a, files.describe_progress(a)), ("B", b, files.describe_progress(b))]
        context["found"] = compare_evaluations(a, b, SystemNameMasker(user))
    return render(request, "evaluations/compare.html", context)


@require_POST
def check_source(request: HttpRequest) -> HttpResponse:
    """Check all labels of a source."""
    actor = Actor.of(request, actions.STARTS)
    try:
        return redirect(actions.check_source(actor, request.POST.get("source", "")))
    except ActionRefused as refusal:
        messages.error(request, str(refusal))
        return redirect("evaluation-new")


# --- actions on an evaluation ---


def _do(
    request: HttpRequest, pk: int, act: Callable[..., Any], name: str = "", form: forms.Form | None = None
) -> HttpResponse:
    """Do an action, with what its form says; then return to the page. A refused form, by its `name` in the template,
    keeps its input."""
    actor = Actor.of(request, actions.STARTS)
    row = get_object_or_404(Evaluation.objects.select_related("job"), pk=pk)
    try:
        if form is None:
            act(actor, row)
        elif form.is_valid():
            act(actor, row, **form.cleaned_data)
    except ActionRefused as refusal:
        # Only invalid input belongs beside a field.
        if form is None or not isinstance(refusal, InvalidInput):
            messages.error(request, str(refusal))
            return redirect("evaluation", pk)
        add_refusal(form, refusal)
    return _render_evaluation(request, pk, 400, **{name: form}) if form and form.errors else redirect("evaluation", pk)


@require_POST
def stop(request: HttpRequest, pk: int) -> HttpResponse:
    """Stop it after its current step."""
    return _do(request, pk, actions.stop)


@require_POST
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    """Resume it, with new limits if given."""
    return _do(request, pk, actions.resume, "resume_form", ResumeEvaluation(request.POST))


@require_POST
def score_again(request: HttpRequest, pk: int) -> HttpResponse:
    """Score existing labels again, without runs."""
    return _do(request, pk, actions.score_again)


@require_POST
def repair(request: HttpRequest, pk: int) -> HttpResponse:
    """Reduce the weight of units judged spurious, and measure the effect."""
    return _do(request, pk, actions.repair, "repair_form", RepairEvaluation(request.POST))


@require_POST
def ask_people(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask people to label a quarter of the units."""
    return _do(request, pk, actions.ask_people)


@require_POST
def compare_labels(request: HttpRequest, pk: int) -> HttpResponse:
    """Create a trial between its labels."""
    actor = Actor.of(request, MANAGES)
    row = get_object_or_404(Evaluation, pk=pk)
    form = CompareLabels(row, request.POST)
    if form.is_valid():
        given = form.cleaned_data
        try:
            trial = make_trial_of(actor, row, given["source"], most=given["most"], judges_wanted=given["judges"])
            return redirect(trial)
        except InvalidInput as refusal:
            add_refusal(form, refusal, sources="source", judges_wanted="judges")
        except ActionRefused as refusal:
            messages.error(request, str(refusal))
            return redirect("evaluation", pk)
    return _render_evaluation(request, pk, 400, labels_form=form)


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete it. Runs, labels and checks remain."""
    actor = Actor.of(request, actions.STARTS)
    try:
        actions.delete(actor, get_object_or_404(Evaluation.objects.select_related("job"), pk=pk))
    except ActionRefused as refusal:
        messages.error(request, str(refusal))
        return redirect("evaluation", pk)
    return redirect("evaluations")
