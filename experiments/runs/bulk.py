"""What can be done to many runs at once: stop, start again, tag, export, compare. Each asks first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from experiments.core import access, tagging
from experiments.core.actors import Actor
from experiments.core.errors import ActionRefused, InvalidFields
from experiments.core.params import parse_key
from experiments.models import Run
from experiments.models.member import Role
from experiments.models.tag import TAG_CHARS
from experiments.runs import actions, lists
from experiments.runs.steering import actions as steering
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
    do: Callable[[Actor, Run, str], str]

    def apply(self, actor: Actor, run: Run, words: str) -> str:
        """Why it was not done, "" if it was."""
        try:
            return self.do(actor, run, words)
        except InvalidFields as error:
            return " ".join(each for told in error.fields.values() for each in told)
        except ActionRefused as refused:
            return str(refused)


@require_POST
def act(request: HttpRequest) -> HttpResponse:
    """Ask, or, once that is answered, do it and say what was done and what could not be."""
    user = access.require(request)
    name, back = (
        request.POST.get("action", ""),
        f"{reverse('runs')}?{QueryDict(request.POST.get('query', '')).urlencode()}",
    )
    runs, words = select_runs(request, user), request.POST.get("tag", "").strip()
    count = runs.count()
    if problem := refusal(name, count, words):
        messages.error(request, problem)
        return redirect(back)
    if name in PAGES:
        return redirect(f"{reverse(PAGES[name])}?{selection(request, runs)}")
    access.require(request, Role.RESEARCHER)
    if "sure" in request.POST:
        actor = Actor.of(request, Role.RESEARCHER)
        report(request, ACTIONS[name], [(run, ACTIONS[name].apply(actor, run, words)) for run in runs])
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


def select_runs(request: HttpRequest, user: User) -> QuerySet[Run]:
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


def pause(actor: Actor, run: Run, words: str) -> str:
    del words
    return "" if steering.pause(actor, run.pk) else "it is paused already."


def resume(actor: Actor, run: Run, words: str) -> str:
    del words
    return "" if steering.resume(actor, run.pk) else "it is under way."


def stop(actor: Actor, run: Run, words: str) -> str:
    del words
    return "" if steering.stop(actor, run.pk) else "it has ended already."


def run_again(actor: Actor, run: Run, words: str) -> str:
    """Resume one that waits; ask the same again where it has ended."""
    if run.status == Status.WAITING:
        return resume(actor, run, words)
    if not run.has_ended:
        return "it is still under way."
    actions.ask_again(actor, run)
    return ""


def tag(actor: Actor, run: Run, words: str) -> str:
    tagging.tag(actor, run, words)
    return ""


def untag(actor: Actor, run: Run, words: str) -> str:
    return "" if tagging.untag(actor, run, words) else f"it has no tag “{words}”."


ACTIONS: Mapping[str, Action] = {
    "stop": Action("Stop", "Stopped {count}.", stop),
    "pause": Action("Pause", "Paused {count}, those with a worker as soon as their round is over.", pause),
    "resume": Action("Resume", "Resumed {count}.", resume),
    "retry": Action("Run again", "Started {count} again.", run_again),
    "tag": Action("Tag", "Tagged {count}.", tag),
    "untag": Action("Untag", "Took the tag off {count}.", untag),
}
PAGES: Mapping[str, str] = {"compare": "compare", "export": "exports", "review": "review-new"}
"""Actions that are pages of their own."""
