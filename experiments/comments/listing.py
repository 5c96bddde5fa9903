"""What is shown together: the Comments tab, a page of threads; one event with its threads, tags and a form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Q

from experiments.comments import anchors, imported, reading
from experiments.comments.anchors import Anchor, Nowhere
from experiments.core import access
from experiments.display import window
from experiments.display.tab_pages import Page
from experiments.models import Event, ImportedOpinions, Run, Tag
from experiments.models.member import Role

PER_PAGE = 30
SHOWS = {"open": "Open", "resolved": "Resolved", "all": "All"}


def read(run: Run, user: User, params: Mapping[str, str]) -> dict[str, Any]:
    """A page of threads, the newest first; with `comment` in the address the page that holds this one."""
    if reading.hides(user, run):
        due = run.review_items.filter(complete=False, queue__blind=True, queue__closed=None).first()
        return {"run": run, "hidden": reading.HIDDEN, "review_it": due.get_absolute_url() if due else ""}
    totals = {name: run.threads.filter(condition).count() for name, condition in CONDITIONS.items()}
    totals["all"] = sum(totals.values())
    show, place = chosen(run, params)
    page = Page.of({**params, "show": show, **place}, totals[show], PER_PAGE, "tab", "show")
    came = ImportedOpinions.objects.filter(run=run).first() if page.number == 1 else None
    rows = reading.threads(run).filter(CONDITIONS.get(show, Q())).order_by("-pk")[page.start : page.end]
    return {
        "run": run,
        "page": page,
        "show": show,
        "shows": [(name, label, totals[name]) for name, label in SHOWS.items()],
        "talks": reading.talks(run, rows),
        "brought": came,
        "brought_threads": imported.places(run, came),
        **standing(user),
    }


CONDITIONS = {"open": Q(resolved=None), "resolved": Q(resolved__isnull=False)}


def chosen(run: Run, params: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Which threads are shown, and the page if the address asks for a comment."""
    key = window.number(params, "comment")
    thread = run.threads.filter(comments=key).first() if key is not None else None
    if thread is not None:
        newer = run.threads.filter(pk__gt=thread.pk).count()
        return "all", {"page": str(newer // PER_PAGE + 1)}
    return (params.get("show", "") if params.get("show") in SHOWS else "open"), {}


def standing(user: User) -> dict[str, Any]:
    """Who looks, and whether they may write."""
    role = access.role_of(user)
    return {"me": user, "may_comment": role is not None and role >= Role.RESEARCHER}


# --- one event ---------------------------------------------------------------------------------------


def at(run: Run, user: User, event: Event, params: Mapping[str, str]) -> dict[str, Any]:
    """The threads on what an event shows, and what a new one would hang on."""
    context: dict[str, Any] = {"run": run, "event": event, "query": urlencode(params), **standing(user)}
    if reading.hides(user, run):
        return context | {"hidden": reading.HIDDEN}
    anchor, problem = wanted(run, event, params)
    talks = reading.talks(run, reading.at_spot(run, event))
    return context | {"talks": talks, "anchor": anchor, "problem": problem, "tags": tags_of(anchor)}


def wanted(run: Run, event: Event, params: Mapping[str, str]) -> tuple[Anchor, str]:
    """What the address names, else the event, or the experiment that it shows; and what is wrong with the address."""
    number = str(event.number) if event.kind in anchors.PROGRAMS else ""
    usual = {"on": "experiment", "experiment": number} if number else {"on": "event", "seq": str(event.seq)}
    if not params.get("on"):
        return anchors.read(run, usual), ""
    try:
        return anchors.read(run, {**usual, "seq": str(event.seq), **params}), ""
    except Nowhere as problem:
        return anchors.read(run, usual), str(problem)


def tags_of(anchor: Anchor) -> list[Tag] | None:
    """The tags of an experiment or an image; None for what has none."""
    row = anchor.observation or anchor.experiment
    return list(row.tags.all()) if row is not None else None
