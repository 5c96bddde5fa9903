"""Pages of pairwise trials: list, create, and show a trial with its judges and, once closed, its results."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from experiments.core import access, notify, worker_status
from experiments.core.access import HtmxRequest
from experiments.core.actors import Actor
from experiments.core.errors import ActionRefused, InvalidInput
from experiments.core.paging import Page
from experiments.core.system_names import SystemNameMasker
from experiments.display.form_fields import add_refusal
from experiments.display.narrowing import list_fields
from experiments.display.tables import ListColumn, choose_columns
from experiments.models import Judge, Layer, PairKind, PairwiseTrial, Role, VisionModelRow
from experiments.pairwise import actions, drawing, judging, lists, results, sources
from experiments.pairwise.form import MAX_PAIRS, AskJudge, NewTrial, draft_trial
from experiments.pairwise.of_evaluation import name_sources
from experiments.runs.filter_words import describe_filter

PER_PAGE = 30
COLUMNS = (
    ListColumn("number", "Number", kind="number"),
    ListColumn("labels", "Labels"),
    ListColumn("place", "Layers", kind="unit-cell"),
    ListColumn("pairs", "Pairs", "size", "number"),
    ListColumn("status", "Status"),
    ListColumn("judged", "Judged by you"),
    ListColumn("votes", "Votes", "votes", "number", wide=True),
    ListColumn("evaluation", "Evaluation", kind="secondary", wide=True),
    ListColumn("owner", "By", "owner", "secondary", wide=True),
    ListColumn("created", "Created", "created", "secondary"),
    ListColumn("closed", "Closed", "closed", "secondary"),
)
DEFAULT_COLUMNS = ("labels", "place", "pairs", "status", "judged", "created")
"""Columns of the list by default."""
JUDGES = "judges"
"""Id of the part of the page that htmx reloads while backbones judge."""


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """List the trials that the query selects, with their progress and the viewer's."""
    user = access.require(request)
    role = access.role_in(request) or Role.VIEWER
    found = lists.trials_from(request.GET.dict(), user)
    page = Page.of(request.GET, found.rows.count(), PER_PAGE)
    rows = list(found.rows[page.start : page.end])
    contents = lists.read_contents(rows, user)
    columns = choose_columns(COLUMNS, DEFAULT_COLUMNS, request.GET.getlist("col"))
    context = {
        "breadcrumbs": _list_breadcrumbs(),
        "found": found,
        "page": page,
        "rows": [(row, name_sources(row), contents[row.pk]) for row in rows],
        "columns": columns,
        "shown": columns.has,
        "fields": list_fields(lists.FILTERS, found.values, SystemNameMasker(user)),
        "statuses": lists.FILTERS["status"].choices,
        "words": describe_filter("pairwise trials", found.values),
        "any": bool(rows) or PairwiseTrial.objects.exists(),
        "may_judge": role >= Role.REVIEWER,
        "may_manage": role >= actions.MANAGES,
    }
    return render(request, "pairwise/index.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """Show the form with the number of pairs it would give, or create the trial."""
    actor = Actor.of(request, actions.MANAGES)
    sent = request.method == "POST"
    given = request.POST if sent else request.GET
    listed = sources.list_sources()
    # Without a source the address only fills the form in.
    form = NewTrial(given, listed, untouched=not (sent or "source" in given))
    if sent:
        with suppress(ActionRefused):
            return redirect(actions.make_trial(actor, form))
    draft = draft_trial(form) if form.is_valid() else None
    trial, pairs = draft or (None, [])
    model = given.get("model", "")
    context = {
        "form": form,
        "breadcrumbs": _list_breadcrumbs(("New trial", reverse("pairwise-new"))),
        "draft": trial,
        "counts": Counter(pair.kind for pair in pairs),
        "votes": len(pairs),
        "sources": listed,
        "chosen": given.getlist("source"),
        "kept": [(name, form.data.get(name, "")) for name in form.fields if name != "source"],
        "models": VisionModelRow.objects.values_list("name", flat=True),
        "layers": Layer.objects.filter(model__name=model).values_list("name", flat=True) if model else [],
        "most": MAX_PAIRS,
    }
    return render(request, "pairwise/new.html", context, status=400 if sent else 200)


@require_safe
def trial(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the settings and judges of a trial, and its results once it is closed."""
    access.require(request)
    return _render_trial(request, pk, AskJudge())


def _render_trial(request: HtmxRequest, pk: int, form: AskJudge, status: int = 200) -> HttpResponse:
    """Render the page, with a refused form if there is one. For htmx only the judges."""
    user = access.require(request)
    row = get_object_or_404(lists.trials(user), pk=pk)
    role = access.role_in(request) or Role.VIEWER
    judges = [(judge, notify.read_progress(judge.job)) for judge in lists.judges(row)]
    kinds = dict(row.pairs.order_by().values_list("kind").annotate(Count("pk")))
    context: dict[str, Any] = {
        "trial": row,
        "breadcrumbs": _list_breadcrumbs((row.name, row.get_absolute_url())),
        "judges": judges,
        "moving": any(judge.job and judge.job.is_moving for judge, _ in judges),
        "worker": worker_status.has_worker(),
        "total": sum(kinds.values()),
        "wanted": (row.judges_wanted or 0) * sum(kinds.values()),
        "full": judging.count_full(row),
        "may_judge": role >= Role.REVIEWER and row.closed is None,
        "may_manage": role >= actions.MANAGES,
    }
    if request.htmx.target == JUDGES:
        return render(request, "pairwise/judges.html", context)
    backbones = lists.judge_backbones() if role >= actions.MANAGES and row.closed is None else []
    form.offer(backbones)
    context |= {
        "kinds": [(label, kinds[kind]) for kind, label in PairKind.choices if kinds.get(kind)],
        "sources": name_sources(row),
        "units": QueryDict(row.query).items(),
        "mine": next((judge.done for judge, _ in judges if judge.user_id == user.pk), 0),
        "form": form,
        "backbones": backbones,
        "any_unpriced": any(each.unpriced for each in backbones),
        "blind": lists.BLIND["scripted"],
    }
    if row.closed:
        found = results.trial_results(row)
        context |= {"results": found, "preference_plot": drawing.draw_preferences(found.together)}
    return render(request, "pairwise/trial.html", context, status=status)


def _list_breadcrumbs(*more: tuple[str, str]) -> list[tuple[str, str]]:
    """Return the breadcrumbs to the trials, and further ones."""
    return [("Pairwise trials", reverse("pairwise")), *more]


# --- managing -------------------------------------------------------------------------------------------------


@require_POST
def ask(request: HtmxRequest, pk: int) -> HttpResponse:
    """Ask a backbone to judge, or to resume."""
    actor = Actor.of(request, actions.MANAGES)
    get_object_or_404(PairwiseTrial, pk=pk)
    form = AskJudge(request.POST)
    if form.is_valid():
        given = form.cleaned_data
        try:
            actions.ask_backbone(actor, pk, given["backbone"], given["cost"], unpriced=given["unpriced"])
        except InvalidInput as refusal:
            add_refusal(form, refusal, cost_limit="cost")
        except ActionRefused as refusal:
            messages.error(request, str(refusal))
    return _render_trial(request, pk, form, 400) if form.errors else redirect("pairwise-trial", pk)


@require_POST
def stop(request: HttpRequest, pk: int, judge: int) -> HttpResponse:
    """Stop a backbone after its current pair."""
    actor = Actor.of(request, actions.MANAGES)
    row = get_object_or_404(Judge.objects.select_related("job"), trial_id=pk, pk=judge, user=None)
    actions.stop_backbone(actor, row)
    return redirect("pairwise-trial", pk)
