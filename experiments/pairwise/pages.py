"""Blind two-way choices: the trials, making one, one trial with its judges and, once closed, its results."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from experiments.core import access, audit, notifications, notify, worker_status
from experiments.core.access import HtmxRequest
from experiments.core.audit import Verb
from experiments.core.display_name import person
from experiments.models import Job, Judge, Layer, PairwiseTrial, VisionModelRow
from experiments.models.job import JobStatus
from experiments.models.member import Role
from experiments.models.notification import Kind as Notice
from experiments.models.pairwise import Kind
from experiments.pairwise import backbones, judging, results, sources, table
from experiments.pairwise.form import MOST, USUAL, Draft, NewTrial, drafted, make
from experiments.reviews import lists as review_lists

MANAGES = Role.ADMIN
"""Who makes and closes trials, and has backbones judge: as with queues, one who manages."""
SHOWN = 100
OF_UNITS = ("model", "layer", "unit", "q")
USUALLY = {"most": str(USUAL), "repeats": "10", "gold": "10", "seed": "0"}
JUDGES = "judges"
"""The part of the page that follows the backbones at work; htmx asks for it by this id."""


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """All trials, and how far each and the reader are."""
    user = access.require(request)
    role = access.role_of(user) or Role.VIEWER
    rows = judging.counted(PairwiseTrial.objects.select_related("owner"), user)[:SHOWN]
    context = {
        "crumbs": way(),
        "trials": [(row, [sources.words(key) for key in row.sources]) for row in rows],
        "may_judge": role >= Role.REVIEWER,
        "may_manage": role >= MANAGES,
    }
    return render(request, "pairwise/index.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """The form, filled in from the address with how many pairs there would be; sent, the trial."""
    user = access.require(request, MANAGES)
    sent = request.method == "POST"
    given = request.POST if sent else request.GET
    listed = sources.listed()
    form = NewTrial(filled(given), listed)
    draft = drafted(form) if (sent or "source" in given) and form.is_valid() else None
    if sent and draft and draft.drawing.count(Kind.PLAIN):
        query = QueryDict(mutable=True)
        query.update({name: given[name] for name in OF_UNITS if given.get(name)})
        with transaction.atomic():
            trial = make(form, draft, user, query.urlencode())
            audit.record(request, Verb.TRIAL_MADE, trial, pairs=len(draft.drawing.pairs))
            tell_judges(user, trial, len(draft.drawing.pairs))
        return redirect(trial)
    problems = form.problems if sent or "source" in given else []
    return render(request, "pairwise/new.html", offered(form, draft, listed, problems), status=400 if sent else 200)


def tell_judges(maker: User, trial: PairwiseTrial, pairs: int) -> None:
    """Everybody who may judge, but for who made it."""
    words = f"{person(maker)} asks you to judge {pairs} pair{'s' * (pairs != 1)} of labels in “{trial.name}”."
    for judge in review_lists.reviewers().exclude(pk=maker.pk):
        notifications.tell(judge, Notice.REVIEW, words, trial.get_absolute_url())


def filled(given: QueryDict) -> QueryDict:
    """What was typed, with what is usual where nothing was."""
    typed = given.copy()
    for name, value in USUALLY.items():
        typed.setdefault(name, value)
    return typed


def offered(form: NewTrial, draft: Draft | None, listed: list[sources.Source], problems: list[str]) -> dict[str, Any]:
    model = str(form.data.get("model", ""))
    return {
        "form": form,
        "crumbs": [*way(), ("New trial", reverse("pairwise-new"))],
        "draft": draft,
        "counts": {kind: draft.drawing.count(kind) for kind in Kind.values} if draft else {},
        "problems": problems,
        "sources": listed,
        "chosen": cast("QueryDict", form.data).getlist("source"),
        "kept": [(name, form.data.get(name, "")) for name in form.fields if name != "source"],
        "models": VisionModelRow.objects.values_list("name", flat=True),
        "layers": Layer.objects.filter(model__name=model).values_list("name", flat=True) if model else [],
        "most": MOST,
    }


@require_safe
def trial(request: HtmxRequest, pk: int) -> HttpResponse:
    """How a trial was made and who has judged how much; once it is closed, what came of it."""
    user = access.require(request)
    row = get_object_or_404(PairwiseTrial.objects.select_related("owner"), pk=pk)
    role = access.role_of(user) or Role.VIEWER
    judges = judging_now(row)
    kinds = dict(row.pairs.order_by().values_list("kind").annotate(Count("pk")))
    mine = next((judge.done for judge, _ in judges if judge.user_id == user.pk), 0)
    context = {
        "trial": row,
        "crumbs": way(row),
        "judges": judges,
        "moving": any(judge.job and judge.job.is_moving for judge, _ in judges),
        "worker": worker_status.is_here(),
        "total": sum(kinds.values()),
        "may_judge": role >= Role.REVIEWER and row.closed is None,
        "may_manage": role >= MANAGES,
    }
    if request.htmx.target == JUDGES:
        return render(request, "pairwise/judges.html", context)
    offered = backbones.offered() if role >= MANAGES and row.closed is None else []
    context |= {
        "kinds": [(label, kinds[kind]) for kind, label in Kind.choices if kinds.get(kind)],
        "sources": [sources.words(key) for key in row.sources],
        "units": QueryDict(row.query).items(),
        "mine": mine,
        "backbones": offered,
        "any_unpriced": any(each.unpriced for each in offered),
        "blind": backbones.BLIND["scripted"],
        "results": results.results(row) if row.closed else None,
    }
    return render(request, "pairwise/trial.html", context)


def way(row: PairwiseTrial | None = None) -> list[tuple[str, str]]:
    """The breadcrumbs of the trials, and of one by its name."""
    found = [("Two-way choices", reverse("pairwise"))]
    return [*found, (row.name, row.get_absolute_url())] if row else found


def judging_now(row: PairwiseTrial) -> list[tuple[Any, dict[str, Any] | None]]:
    """The judges, how much each has done, and what a worker says of it."""
    rows: QuerySet[Judge] = row.judges.select_related("user", "job").annotate(done=Count("votes"))
    return [(judge, told(judge.job)) for judge in rows]


def told(job: Job | None) -> dict[str, Any] | None:
    return notify.reported(job.topic) if job and job.status == JobStatus.RUNNING else None


@require_POST
def close(request: HttpRequest, pk: int) -> HttpResponse:
    """Say for good which label is whose."""
    access.require(request, MANAGES)
    get_object_or_404(PairwiseTrial, pk=pk)
    try:
        with transaction.atomic():
            audit.record(request, Verb.TRIAL_CLOSED, judging.close(pk))
    except judging.Refused as refusal:
        messages.error(request, str(refusal))
    return redirect("pairwise-trial", pk)


@require_safe
def file(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Every choice as CSV. Raises Http404 while it would tell whose the labels are."""
    access.require(request)
    row = get_object_or_404(PairwiseTrial, pk=pk)
    if row.closed is None:
        raise Http404("Which label is whose is hidden until the trial is closed; then its choices can be had here.")
    response = HttpResponse("".join(table.lines(row)), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="maia-votes-{row.pk}.csv"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


@require_POST
def ask(request: HttpRequest, pk: int) -> HttpResponse:
    """Have a backbone judge, or go on judging."""
    user = access.require(request, MANAGES)
    get_object_or_404(PairwiseTrial, pk=pk)
    try:
        with transaction.atomic():
            limit = dollars(request.POST.get("cost", ""))
            unpriced = "unpriced" in request.POST
            judge = backbones.ask(pk, request.POST.get("backbone", ""), limit, user, unpriced=unpriced)
            audit.record(request, Verb.JUDGE_ASKED, judge, cost_limit=limit)
    except judging.Refused as refusal:
        messages.error(request, str(refusal))
    return redirect("pairwise-trial", pk)


def dollars(typed: str) -> float:
    """Raises Refused for what is no amount."""
    try:
        return float(typed)
    except ValueError:
        raise judging.Refused(f"“{typed[:40]}” is no amount of money: write it as 5 or 0.50.") from None


@require_POST
def stop(request: HttpRequest, pk: int, judge: int) -> HttpResponse:
    """Have a backbone stop after the pair it looks at."""
    access.require(request, MANAGES)
    row = get_object_or_404(Judge.objects.select_related("job"), trial_id=pk, pk=judge, user=None)
    with transaction.atomic():
        backbones.stop(row)
        audit.record(request, Verb.JUDGE_STOPPED, row)
    return redirect("pairwise-trial", pk)
