"""Sweeps: the list, starting one, and one with its map, figures, failures, labels and runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from experiments.core import access, compatibility, notify, worker_status
from experiments.core.actors import Actor
from experiments.core.errors import ActionRefused, InvalidFields, InvalidInput
from experiments.core.paging import Page
from experiments.core.spreadsheets import cell, csv_header, csv_line
from experiments.core.sweep_totals import BUDGETS
from experiments.core.system_names import SystemNameMasker
from experiments.display.form_fields import add_refusal
from experiments.display.run_pictures import find_pictures
from experiments.models import Dataset, Layer, Role, Run, Sweep, Toolset, VisionModelRow
from experiments.runs.lists import runs_from
from experiments.sweeps import actions, drawing, lists, summaries
from experiments.sweeps.fields import ChangeSweep
from experiments.sweeps.forecast import predict, predict_rest
from experiments.sweeps.form import NewSweep, list_agents
from experiments.sweeps.selection import SelectionKind
from experiments.units.unit_ranges import read_stretches
from workers.record import tasks
from workers.record.limits import DEFAULT_LIMITS

PER_PAGE, RUNS_PER_PAGE = 30, 50
ASKED_EVERY, RUNS_A_SECOND = 4, 1_000
"""An open page asks again after this many seconds, plus one for every `RUNS_A_SECOND` runs, since all are read
again."""
GROUPS, GROUPED_RUNS = 30, 40
"""Groups of labels that the page lists, and runs of one that its link names."""
_OWN = {"filter": ("state", "words"), "sample": ("sample",), "unlabelled": ("below",), "list": ("units", "file")}
"""Fields of each way of choosing units."""
_RUN = (*DEFAULT_LIMITS, "dataset", "surroundings", "exemplars", "reflections", "label_check", "seed")
"""Fields of each run."""
_COLUMNS = ("run", "model", "layer", "unit", "agent", "status", "label", "r", "q", "cost")
"""Columns of the file."""


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """List all sweeps, or those in one status, the newest first."""
    access.require(request)
    found = lists.sweeps_from(request.GET)
    page = Page.of(request.GET, found.rows.count(), PER_PAGE, *lists.FILTERS)
    shown = [(row, lists.state_of(row)) for row in found.rows[page.start : page.end]]
    context = {
        "found": found,
        "rows": shown,
        "page": page,
        "statuses": lists.FILTERS["status"].choices,
        "any": bool(shown) or Sweep.objects.exists(),
        "may_start": (access.role_in(request) or Role.VIEWER) >= actions.STARTS,
        "moving": any(state.live for _, state in shown),
    }
    return render(request, "sweeps/index.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """Show the form, filled in from the address or from what was sent, with what the sweep would use; start the sweep
    if `start` was sent."""
    actor = Actor.of(request, actions.STARTS)
    sent = request.method == "POST"
    given = _read_given(request)
    # A model alone in the address only fills the form in: there is nothing to check yet.
    form = NewSweep(given, SystemNameMasker(actor.person), untouched=not sent and len(request.GET) < 2)
    starts = sent and "start" in given
    if starts:
        with suppress(InvalidFields):
            return redirect(actions.start(actor, form))
    draft = form.draft() if form.is_valid() else None
    context = {
        "form": form,
        "draft": draft,
        "forecast": predict(draft) if draft else None,
        **_offer_choices(form),
    }
    return render(request, "sweeps/new.html", context, status=400 if starts else 200)


def _read_given(request: HttpRequest) -> QueryDict:
    """Return the form's data: what was sent, with a file's lines as the list; else the address, over what suits."""
    if request.method == "POST" and "fill" in request.POST:  # from where units were chosen
        return _build_form_data(request.POST)
    if request.method == "POST":
        given = request.POST.copy()
        if file := request.FILES.get("file"):
            # Other encodings give unreadable names, which the form names by line.
            given["units"] = file.read().decode("utf-8", "replace")
            given["choose"] = SelectionKind.LIST.value
        return given
    return _suit(request.GET)


def _build_form_data(sent: QueryDict) -> QueryDict:
    """Return the form with the units chosen on a layer's page: one by one as `unit`, or as ranges in `units`."""
    place = QueryDict(mutable=True)
    place.update({name: sent.get(name, "") for name in ("model", "layer", "choose")})
    given = _suit(place)
    with suppress(ValueError):
        chosen = [*sent.getlist("unit"), *map(str, read_stretches(sent.get("units", "")[:100_000], 10**6))]
        given["units"] = "\n".join(dict.fromkeys(chosen))
    return given


def _suit(asked: QueryDict) -> QueryDict:
    """Return what an address asks for, over what suits its model."""
    given = QueryDict(mutable=True)
    model = asked.get("model") or _first_model()
    fitting = compatibility.find_matching_plugins(model)
    task = tasks.FUNCTION if compatibility.has_functions(model) else tasks.DEFAULT_TASK
    given.update({"model": model, "task": task, "choose": SelectionKind.LAYERS.value, "seed": "0"})
    given.update({"sample": "20", "below": "0.5", "exemplars": "0", "reflections": "0", "priority": "normal"})
    given.update({name: str(value) for name, value in DEFAULT_LIMITS.items()})
    given["agent"] = next((key for key in list_agents() if key.partition(":")[0] == fitting["backbone"]), "")
    given["toolset"] = fitting["toolset"]
    for name, values in asked.lists():
        given.setlist(name, values)
    return given


def _first_model() -> str:
    there = VisionModelRow.objects.filter(available=True)
    row = there.filter(name=compatibility.TOYBOX).first() or there.first()
    return row.name if row else ""


def _offer_choices(form: NewSweep) -> dict[str, Any]:
    """Fill the lists of the page's form with what can be used now, after the form is checked."""
    models = VisionModelRow.objects.filter(available=True)
    datasets = Dataset.objects.filter(available=True)
    offered = {
        "model": [(each.name, each.name) for each in models],
        "dataset": [("", "what suits the model"), *((each.key, each.label or each.key) for each in datasets)],
    }
    for name, choices in offered.items():
        cast("forms.Select", form.fields[name].widget).choices = choices
    toolsets = cast("forms.MultipleChoiceField", form.fields["toolset"])
    toolsets.choices = [(each.key, each.label or each.key) for each in Toolset.objects.filter(available=True)]
    return {
        "models": models,
        # Radio buttons, each with the fields of its way of choosing units.
        "ways": [(option, [form[name] for name in _OWN.get(option.data["value"], ())]) for option in form["choose"]],
        "run_limits": [form[name] for name in _RUN],
        "worker": worker_status.has_worker(),
    }


@require_safe
def sweep(request: HttpRequest, pk: int) -> HttpResponse:
    """Show its progress and findings so far; parts of it are polled while it runs."""
    access.require(request)
    return _render_sweep(request, pk)


def _render_sweep(request: HttpRequest, pk: int, refused: ChangeSweep | None = None) -> HttpResponse:
    """The page, with a refused form if there is one."""
    user = access.require(request)
    row, names = _find(pk), SystemNameMasker(user)
    role = access.role_in(request) or Role.VIEWER
    runs = lists.read_runs(row, names)
    groups = lists.group_runs(runs)
    scheme = request.GET.get("colour", "")
    scheme = scheme if scheme in drawing.SCHEMES else "status"
    layers = list(
        Layer.objects.filter(model__name=row.selection.get("model"), name__in=row.selection.get("units", {}))
        .select_related("model")
        .order_by("position")
    )
    left = lists.count_left(row)
    # Later ones win: the address may sort, but not show another sweep.
    listed = runs_from({"sort": "check"} | request.GET.dict() | {"sweep": str(pk)}, user)
    table = listed.runs.select_related("label_check")
    page = Page.of(request.GET, table.count(), RUNS_PER_PAGE, "status", "layer", "backbone", "sort", "colour")
    shown = table[page.start : page.end]
    context = {
        "row": row,
        "state": lists.state_of(row),
        "asked_every": ASKED_EVERY + row.created_runs // RUNS_A_SECOND,
        "left": left,
        "rest": predict_rest(row, left) if left else None,
        "said": summaries.describe_progress(row),
        "progress": notify.read_progress(row.job),
        "worker": worker_status.has_worker(),
        "budgets": _read_budgets(row),
        "statuses": lists.count_statuses(row),
        "map": drawing.draw_map(row, layers, runs, groups, scheme),
        "schemes": drawing.SCHEMES.items(),
        "scores": drawing.draw_scores(runs),
        "groups": [(group, ",".join(map(str, group.members[:GROUPED_RUNS]))) for group in groups[:GROUPS]],
        "group_count": len(groups),
        "most": len(groups[0].members) if groups else 1,
        "failures": lists.list_failures(row),
        "agents": lists.compare_agents(runs),
        "beyond_chance": sum(run.beyond_chance for run in runs),
        "tested": sum(run.q is not None for run in runs),
        "runs": [_name_unit(run, names) for run in shown],
        "pictures": find_pictures(run.pk for run in shown),
        "page": page,
        "chosen_status": listed.values.get("status", ""),
        "may_change": role >= actions.STARTS and not row.evaluation_id and access.may_change(user, row.owner_id),
        "may_start": role >= actions.STARTS,
        "form": refused or ChangeSweep.of(row),
    }
    return render(request, "sweeps/page.html", context, status=400 if refused else 200)


def _name_unit(run: Run, names: SystemNameMasker) -> tuple[Run, str, str]:
    """Return a run with its unit's name and address; no address if the viewer is to judge it blind."""
    return run, names.short(run), "" if names.is_masked(run) else reverse("unit", args=[run.model, run.layer, run.unit])


def _find(pk: int) -> Any:
    return get_object_or_404(lists.with_progress(Sweep.objects.all()), pk=pk)


def _read_budgets(row: Sweep) -> list[dict[str, Any]]:
    """Return for each budget its field, what it took, the limit or None, and both as they are written."""
    found = []
    for (limit, (column, shape)), name in zip(BUDGETS.items(), ("cost", "tokens", "seconds"), strict=True):
        taken, most = getattr(row, column), getattr(row, limit)
        wrote = [
            summaries.format_seconds(each) if name == "seconds" else shape.format(each) for each in (taken, most or 0)
        ]
        found.append({"name": name, "column": limit, "taken": taken, "most": most, "said": wrote[0], "limit": wrote[1]})
    return found


@require_safe
def file(request: HttpRequest, pk: int) -> HttpResponse:
    """Send every run of a sweep as a line of CSV."""
    user = access.require(request)
    row = get_object_or_404(Sweep, pk=pk)
    lines = [csv_header(_COLUMNS)]
    for run in lists.read_runs(row, SystemNameMasker(user)):
        labels, model = "; ".join(run.labels), row.selection.get("model", "")
        cells = (run.pk, model, run.layer, run.unit, run.agent, run.status.value, labels, run.r, run.q, run.cost)
        lines.append(csv_line(map(cell, cells)))
    response = HttpResponse(b"".join(lines), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="maia-sweep-{pk}.csv"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


# --- what is done to one ---


def _do(request: HttpRequest, pk: int, act: Callable[[Actor], Any]) -> HttpResponse:
    """Do an action or show why it was refused; then return to the page."""
    actor = Actor.of(request, actions.STARTS)
    get_object_or_404(Sweep.objects.only("pk"), pk=pk)
    try:
        act(actor)
    except ActionRefused as refusal:
        messages.error(request, str(refusal))
    return redirect("sweep", pk)


def _do_as_typed(request: HttpRequest, pk: int, act: Callable[[Actor, ChangeSweep], Any]) -> HttpResponse:
    """Do what a form asks for and return to the page; a refused form is shown again with its input."""
    actor = Actor.of(request, actions.STARTS)
    get_object_or_404(Sweep.objects.only("pk"), pk=pk)
    form = ChangeSweep(request.POST)
    if form.is_valid():
        try:
            act(actor, form)
        except InvalidInput as refusal:
            add_refusal(form, refusal)
        except ActionRefused as refusal:
            messages.error(request, str(refusal))
    return _render_sweep(request, pk, form) if form.errors else redirect("sweep", pk)


@require_POST
def pause(request: HttpRequest, pk: int) -> HttpResponse:
    """Start no further round."""
    return _do(request, pk, lambda by: actions.pause(by, pk))


@require_POST
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    """Resume it, with another budget if one was typed."""
    return _do_as_typed(request, pk, lambda by, form: actions.resume(by, pk, form.budget))


@require_POST
def stop(request: HttpRequest, pk: int) -> HttpResponse:
    """Stop it; conclusions stay."""
    return _do(request, pk, lambda by: actions.stop(by, pk))


@require_POST
def retry(request: HttpRequest, pk: int) -> HttpResponse:
    """Retry what failed or was stopped."""
    return _do(request, pk, lambda by: actions.retry(by, pk, request.POST.get("what", "failed")))


@require_POST
def change(request: HttpRequest, pk: int) -> HttpResponse:
    """Change priority or budget."""
    return _do_as_typed(
        request, pk, lambda by, form: actions.change(by, pk, form.cleaned_data["priority"], form.budget)
    )
