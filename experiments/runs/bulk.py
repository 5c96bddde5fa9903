"""Actions on many runs at once: stop, start again, tag, export, compare. Each asks for confirmation first."""

from __future__ import annotations

from collections.abc import Mapping
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
from experiments.models import Role, Run
from experiments.models.tag import TAG_CHARS
from experiments.runs import actions, lists
from experiments.runs.steering import actions as steering
from workers.record.statuses import Status

MAX_RUNS = 1_000
"""Maximum number of runs in one action; more must be narrowed down first."""
MAX_NAMED_RUNS = 20
"""Runs named on the page that asks."""


ACTIONS: Mapping[str, tuple[str, str]] = {
    "stop": ("Stop", "Stopped {count}."),
    "pause": ("Pause", "Paused {count}, those with a worker as soon as their round is over."),
    "resume": ("Resume", "Resumed {count}."),
    "retry": ("Retry", "Started {count} again."),
    "tag": ("Tag", "Tagged {count}."),
    "untag": ("Untag", "Took the tag off {count}."),
}
"""Name of an action -> its verb, and the message afterwards."""
PAGES: Mapping[str, str] = {"compare": "compare", "export": "exports", "review": "review-new", "study": "study-add"}
"""Actions that lead to a page."""
NUMBERED = frozenset({"compare", "study"})
"""Actions that take runs by their numbers, never by a filter."""


@require_POST
def act(request: HttpRequest) -> HttpResponse:
    """Ask for confirmation or, once given, act and report what was done and what could not be."""
    user = access.require(request)
    name, words, query = (request.POST.get(key, "").strip() for key in ("action", "tag", "query"))
    back = f"{reverse('runs')}?{QueryDict(query).urlencode()}"
    runs = _select_runs(request, user)
    count = runs.count()
    # 1. Refuse what cannot be done.
    if problem := refusal(name, count, words):
        messages.error(request, problem)
        return redirect(back)
    # 2. Lead to another page.
    if name in PAGES:  # the query string says the same choice to the other page
        numbers = [str(key) for key in runs.values_list("pk", flat=True)[:MAX_RUNS]]
        chosen = urlencode({"run": numbers if name == "compare" else ",".join(numbers)}, doseq=True)
        if request.POST.get("all") == "yes" and name not in NUMBERED:
            chosen = QueryDict(query).urlencode()
        return redirect(f"{reverse(PAGES[name])}?{chosen}")
    # 3. Act, if the confirmation was given; else ask for it.
    actor = Actor.of(request, Role.RESEARCHER)
    if "sure" in request.POST:
        # One by one: a run that refuses does not hold up the others.
        report(request, name, [(run, do(name, actor, run, words)) for run in runs])
        return redirect(back)
    asked = {"verb": ACTIONS[name][0], "name": name, "tag": words, "count": count, "back": back, "query": query}
    keys, more = list(runs.values_list("pk", flat=True)), max(0, count - MAX_NAMED_RUNS)
    return render(request, "runs/confirm.html", asked | {"keys": keys, "runs": runs[:MAX_NAMED_RUNS], "more": more})


def _select_runs(request: HttpRequest, user: User) -> QuerySet[Run]:
    """Return the ticked runs, or all that the filters choose."""
    if request.POST.get("all") == "yes":
        return lists.runs_from(QueryDict(request.POST.get("query", "")).dict(), user).runs
    keys = [key for key in map(parse_key, request.POST.getlist("run")) if key]
    # One more than the limit, so that `refusal` notices.
    return Run.objects.filter(pk__in=keys[: MAX_RUNS + 1]).order_by("-pk")


def refusal(name: str, count: int, words: str) -> str:
    """Return why nothing is done; "" if it can be."""
    if name not in ACTIONS and name not in PAGES:
        return f"There is no action “{name[:40]}”."
    if not count:
        return "No run is chosen: tick some first."
    if name == "compare" and not 2 <= count <= 6:
        return f"2 to 6 runs can be compared, and {count} are chosen."
    if name in ACTIONS and count > MAX_RUNS:
        return (
            f"{count:,} runs are chosen, and at most {MAX_RUNS:,} can be changed at once. Narrow the list down first."
        )
    if name in ("tag", "untag") and not words:
        return "Write the tag first."
    if len(words) > TAG_CHARS:
        return f"A tag has at most {TAG_CHARS} characters; this one has {len(words)}."
    return ""


def report(request: HttpRequest, name: str, results: list[tuple[Run, str]]) -> None:
    """Show how many runs were changed, and why others were not."""
    reasons: dict[str, list[str]] = {}
    for run, problem in results:
        reasons.setdefault(problem, []).append(str(run.pk))
    # No reason means that it was done.
    done = len(reasons.pop("", ()))
    messages.success(request, ACTIONS[name][1].format(count=f"{done} run{'' if done == 1 else 's'}"))
    for problem, keys in reasons.items():
        named = ", ".join(keys[:10]) + (f" and {len(keys) - 10} more" if len(keys) > 10 else "")
        messages.warning(request, f"Not run {named}: {problem}")


def do(name: str, actor: Actor, run: Run, words: str) -> str:
    """Act on one run; return why it was not done, "" if it was."""
    try:
        match name:
            case "stop":
                return "" if steering.stop(actor, run.pk) else "it has ended already."
            case "pause":
                return "" if steering.pause(actor, run.pk) else "it is paused already."
            case "retry" if run.status != Status.WAITING:  # one that waits is resumed
                if not run.has_ended:
                    return "it is still under way."
                actions.ask_again(actor, run)
            case "resume" | "retry":
                return "" if steering.resume(actor, run.pk) else "it is under way."
            case "tag":
                tagging.tag(actor, run, words)
            case "untag":
                return "" if tagging.untag(actor, run, words) else f"it has no tag “{words}”."
    except InvalidFields as error:
        return " ".join(each for sentences in error.fields.values() for each in sentences)
    except ActionRefused as refused:
        return str(refused)
    return ""
