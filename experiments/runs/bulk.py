"""What can be done to many runs at once: stop, start again, tag, export, compare. Each asks first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from experiments.core import access, audit, queue, tagging
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.params import parse_key
from experiments.models import Run
from experiments.models.member import Role
from experiments.models.tag import TAG_CHARS
from experiments.runs import lists
from experiments.runs.steering import actions
from experiments.runs.steering.actions import Refused
from workers.record.statuses import Status

MOST = 1_000
"""Runs that one action reaches; more are to be narrowed down first."""
SHOWN = 20
"""Runs named on the page that asks."""


@dataclass(frozen=True)
class Action:
    """`do` acts on one run and returns why it did not, "" if it did; `done` says what was done, with {count}."""

    verb: str
    done: str
    do: Callable[[HttpRequest, Run, str], str]


@require_POST
def act(request: HttpRequest) -> HttpResponse:
    """Ask, or, once that is answered, do it and say what was done and what could not be."""
    user = access.require(request)
    name, back = (
        request.POST.get("action", ""),
        f"{reverse('runs')}?{QueryDict(request.POST.get('query', '')).urlencode()}",
    )
    runs, words = chosen(request, user), request.POST.get("tag", "").strip()
    count = runs.count()
    if problem := refusal(name, count, words):
        messages.error(request, problem)
        return redirect(back)
    if name in PAGES:
        return redirect(f"{reverse(PAGES[name])}?{selection(request, runs)}")
    access.require(request, Role.RESEARCHER)
    if "sure" in request.POST:
        report(request, ACTIONS[name], [(run, ACTIONS[name].do(request, run, words)) for run in runs])
        return redirect(back)
    keys = list(runs.values_list("pk", flat=True))
    asked = {
        "action": ACTIONS[name],
        "name": name,
        "tag": words,
        "count": count,
        "keys": keys,
        "back": back,
        "query": request.POST.get("query", ""),
    }
    return render(request, "runs/sure.html", asked | {"runs": runs[:SHOWN], "more": max(0, count - SHOWN)})


def chosen(request: HttpRequest, user: User) -> QuerySet[Run]:
    """The ticked runs, or all that the filters choose."""
    if request.POST.get("all") == "yes":
        return lists.runs_from(QueryDict(request.POST.get("query", "")).dict(), user).runs
    keys = [key for key in map(parse_key, request.POST.getlist("run")) if key]
    return Run.objects.filter(pk__in=keys[: MOST + 1]).order_by("-pk")


def refusal(name: str, count: int, words: str) -> str:
    """Why nothing is done; "" if it can be."""
    if name not in ACTIONS and name not in PAGES:
        return f"There is no action “{name[:40]}”."
    if not count:
        return "No run is chosen: tick some first."
    if name == "compare" and not 2 <= count <= 6:
        return f"2 to 6 runs can be compared, and {count} are chosen."
    if name in ACTIONS and count > MOST:
        return f"{count:,} runs are chosen, and at most {MOST:,} can be changed at once. Narrow the list down first."
    if name in ("tag", "untag") and not words:
        return "Write the tag first."
    if len(words) > TAG_CHARS:
        return f"A tag has at most {TAG_CHARS} characters; this one has {len(words)}."
    return ""


def selection(request: HttpRequest, runs: QuerySet[Run]) -> str:
    """The query string that says the same choice to another page."""
    if request.POST.get("all") == "yes" and request.POST.get("action") != "compare":
        return QueryDict(request.POST.get("query", "")).urlencode()
    keys = [str(key) for key in runs.values_list("pk", flat=True)[:MOST]]
    return urlencode({"run": keys if request.POST.get("action") == "compare" else ",".join(keys)}, doseq=True)


def report(request: HttpRequest, action: Action, results: list[tuple[Run, str]]) -> None:
    """Say how many, and why not the others."""
    done = sum(not problem for _, problem in results)
    messages.success(request, action.done.format(count=f"{done} run{'' if done == 1 else 's'}"))
    reasons: dict[str, list[str]] = {}
    for run, problem in results:
        if problem:
            reasons.setdefault(problem, []).append(str(run.pk))
    for problem, keys in reasons.items():
        named = ", ".join(keys[:10]) + (f" and {len(keys) - 10} more" if len(keys) > 10 else "")
        messages.warning(request, f"Not run {named}: {problem}")


def stop(request: HttpRequest, run: Run, words: str) -> str:
    del words
    return "" if actions.stop(Actor.of(request, Role.RESEARCHER), run.pk) else "it has ended already."


def pause(request: HttpRequest, run: Run, words: str) -> str:
    del words
    try:
        return "" if actions.pause(Actor.of(request, Role.RESEARCHER), run.pk) else "it is paused already."
    except Refused as refused:
        return str(refused)


def go_on(request: HttpRequest, run: Run, words: str) -> str:
    del words
    try:
        return "" if actions.go_on(Actor.of(request, Role.RESEARCHER), run.pk) else "it is under way."
    except Refused as refused:
        return str(refused)


@transaction.atomic
def again(request: HttpRequest, run: Run, words: str) -> str:
    """Go on with one that waits; ask the same again where it has ended."""
    if run.status == Status.WAITING:
        return go_on(request, run, words)
    if not run.has_ended:
        return "it is still under way."
    asked = ("question", "task", "system_kind", "model", "layer", "unit", "options", "toolset", "limits", "seed")
    same = {name: getattr(run, name) for name in (*asked, "backbone", "backbone_model")}
    made = Run.objects.create(owner=access.require(request, Role.RESEARCHER), parent=run, **same)
    audit.record(request, Verb.RUN_ASKED, made, again=run.pk)
    queue.enqueue(made.pk)
    return ""


@transaction.atomic
def tag(request: HttpRequest, run: Run, words: str) -> str:
    tagging.put(run, words)
    audit.record(request, Verb.RUN_TAGGED, run, tag=words)
    return ""


@transaction.atomic
def untag(request: HttpRequest, run: Run, words: str) -> str:
    if not tagging.take(run, words):
        return f"it has no tag “{words}”."
    audit.record(request, Verb.RUN_UNTAGGED, run, tag=words)
    return ""


ACTIONS: Mapping[str, Action] = {
    "stop": Action("Stop", "Stopped {count}.", stop),
    "pause": Action("Pause", "Paused {count}, those with a worker as soon as their round is over.", pause),
    "resume": Action("Resume", "Had {count} go on.", go_on),
    "retry": Action("Run again", "Started {count} again.", again),
    "tag": Action("Tag", "Tagged {count}.", tag),
    "untag": Action("Untag", "Took the tag off {count}.", untag),
}
PAGES: Mapping[str, str] = {"compare": "compare", "export": "exports", "review": "review-new"}
"""Actions that are pages of their own."""
