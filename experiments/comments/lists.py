"""Threads as pages and the API show them: of a run, an event or an image, and their counts per place.

A user who still has to review a run blind sees none of its comments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Count, Q, QuerySet

from experiments.comments import anchors, imported
from experiments.core import access, blindness
from experiments.core.errors import InvalidInput
from experiments.core.paging import Page
from experiments.core.visibility import visible_to
from experiments.display import window
from experiments.models import Comment, Event, ImportedOpinions, Role, Run, Thread
from experiments.models.comment import On

OF_AN_IMAGE = 20
"""Maximum number of threads on the page of an image."""
HIDDEN = "Comments on this run are hidden from you until you have submitted your review of it."
PER_PAGE = 30
SHOWS = {"open": "Open", "resolved": "Resolved", "all": "All"}
CONDITIONS = {"open": Q(resolved=None), "resolved": Q(resolved__isnull=False)}


@dataclass(frozen=True)
class ThreadView:
    """A thread as pages show it. `spot` is the id of its element in the transcript, "" if none. `gone` is true if
    its quote is no longer there."""

    thread: Thread
    comments: Sequence[Comment]
    spot: str
    seq: int | None
    gone: bool

    @property
    def where(self) -> str:
        """Describe the anchor in words."""
        thread = self.thread
        if thread.on == On.IMAGE and thread.observation and thread.experiment:
            return f"Image “{thread.observation.title or 'untitled'}” of experiment {thread.experiment.number}"
        if thread.experiment:
            return f"Experiment {thread.experiment.number}"
        return {On.RUN: "The run"}.get(On(thread.on), f"Event {thread.seq}")

    @property
    def link(self) -> str:
        """Return the URL of the anchor in the transcript; "" for the run as a whole."""
        if self.seq is None:
            return ""
        query = urlencode({"at": self.seq, "talk": self.thread.pk})
        return f"{self.thread.run.get_absolute_url()}?{query}#{self.spot}"


def is_hidden_from(user: User, run: Run) -> bool:
    """True if this person may neither see nor write comments on the run."""
    return blindness.is_blind(user, run.pk)


def threads(run: Run) -> QuerySet[Thread]:
    """Return the threads of a run with everything that pages show of them."""
    return _with_everything(Thread.objects.filter(run=run))


def _with_everything(rows: QuerySet[Thread]) -> QuerySet[Thread]:
    """Load everything that a thread is shown with. The number of queries is constant."""
    rows = rows.select_related("run", "experiment", "observation__image", "resolved_by")
    return rows.prefetch_related("comments__author", "comments__mentions", "comments__wordings").order_by("pk")


def threads_on_image(user: User, key: str) -> list[ThreadView]:
    """Return the newest threads on an image, from experiments of any run."""
    seen = visible_to(Thread.objects.filter(observation__image=key)).exclude(run__in=blindness.list_blinded_runs(user))
    listed = list(_with_everything(seen).order_by("-pk")[:OF_AN_IMAGE])
    return [ThreadView(each, list(each.comments.all()), *anchors.spot_of(each), gone=False) for each in listed]


def thread_views(run: Run, rows: Iterable[Thread]) -> list[ThreadView]:
    """Return a view of each thread of the run."""
    listed = list(rows)
    spots, gone = _spots_of(run, listed), anchors.find_orphans(run, listed)
    return [ThreadView(each, list(each.comments.all()), *spots[each.pk], each.pk in gone) for each in listed]


def _spots_of(run: Run, rows: Sequence[Thread]) -> dict[int, tuple[str, int | None]]:
    """Return for each thread key the id of its transcript element and the event that this element draws."""
    seqs = {thread.seq for thread in rows if thread.seq is not None}
    numbers = {event.seq: event.number for event in run.events.filter(seq__in=seqs, kind__in=anchors.PROGRAMS)}
    return {thread.pk: anchors.spot_of(thread, numbers) for thread in rows}


# --- one run --------------------------------------------------------------------------------------------------


def run_panel(run: Run, user: User, params: Mapping[str, str]) -> dict[str, Any]:
    """Return a page of threads, newest first. With `comment` in the query, it is the page that holds this comment."""
    if is_hidden_from(user, run):
        due = run.review_items.filter(complete=False, queue__blind=True, queue__closed=None).first()
        return {"run": run, "hidden": HIDDEN, "review_it": due.get_absolute_url() if due else ""}
    totals = {name: run.threads.filter(condition).count() for name, condition in CONDITIONS.items()}
    totals["all"] = sum(totals.values())
    show = params.get("show", "") if params.get("show") in SHOWS else "open"
    key = window.number(params, "comment")
    if key is not None and (thread := run.threads.filter(comments=key).first()):
        newer = run.threads.filter(pk__gt=thread.pk).count()
        show, params = "all", {**params, "page": str(newer // PER_PAGE + 1)}
    page = Page.of({**params, "show": show}, totals[show], PER_PAGE, "tab", "show")
    came = ImportedOpinions.objects.filter(run=run).first() if page.number == 1 else None
    rows = threads(run).filter(CONDITIONS.get(show, Q())).order_by("-pk")[page.start : page.end]
    return {
        "run": run,
        "page": page,
        "show": show,
        "shows": [(name, label, totals[name]) for name, label in SHOWS.items()],
        "threads": thread_views(run, rows),
        "imported": came,
        "imported_threads": imported.list_imported_threads(run, came),
        **viewer_context(user),
    }


def viewer_context(user: User) -> dict[str, Any]:
    """Return the viewer, and whether they may comment."""
    role = access.role_of(user)
    return {"me": user, "may_comment": role is not None and role >= Role.RESEARCHER}


# --- one event ---------------------------------------------------------------------------------------


def event_panel(run: Run, user: User, event: Event, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the threads on what an event shows, and the anchor of a new one."""
    context: dict[str, Any] = {"run": run, "event": event, "query": urlencode(params), **viewer_context(user)}
    if is_hidden_from(user, run):
        return context | {"hidden": HIDDEN}
    anchor, problem = _anchor_of(run, event, params)
    # The threads on what the element of this event shows: on it, its words, its experiment and the images of that
    here = Q(seq=event.seq)
    if event.kind in anchors.PROGRAMS:
        number = event.number
        seqs = run.events.filter(kind__in=anchors.PROGRAMS, payload__number=number).values_list("seq", flat=True)
        here = Q(seq__in=list(seqs)) | Q(experiment__number=number)
    row = anchor.observation or anchor.experiment
    return context | {
        "threads": thread_views(run, threads(run).filter(here)),
        "anchor": anchor,
        "problem": problem,
        "tags": list(row.tags.all()) if row is not None else None,  # None for what has none
    }


def _anchor_of(run: Run, event: Event, params: Mapping[str, str]) -> tuple[Thread, str]:
    """Return the anchor that the query names, and what is wrong with it ("" if nothing).

    Without a valid one, the anchor is the event, or the experiment that it shows.
    """
    number = str(event.number) if event.kind in anchors.PROGRAMS else ""
    usual = {"on": "experiment", "experiment": number} if number else {"on": "event", "seq": str(event.seq)}
    if not params.get("on"):
        return anchors.read_anchor(run, usual), ""
    try:
        return anchors.read_anchor(run, {**usual, "seq": str(event.seq), **params}), ""
    except InvalidInput as problem:
        return anchors.read_anchor(run, usual), str(problem)


# --- numbers of comments --------------------------------------------------------------------------------------


@dataclass
class SpotMark:
    """The mark on a transcript element: its number of comments and of unresolved threads."""

    spot: str
    comments: int = 0
    open: int = 0
    images: dict[str, int] = field(default_factory=dict)
    """Key of an image -> comments on it."""


def comment_marks(run: Run) -> dict[str, Any]:
    """Return the marks of a run, its unresolved quotes with the id of their element, and the number of unresolved
    threads. At most three queries."""
    counted = Count("comments", filter=Q(comments__deleted=None))
    rows = list(run.threads.select_related("experiment", "observation").annotate(said=counted).order_by("pk"))
    spots = _spots_of(run, rows)
    marks: dict[str, SpotMark] = {}
    for row in rows:
        spot, _ = spots[row.pk]
        if not spot:
            continue
        mark = marks.setdefault(spot, SpotMark(spot))
        mark.comments += row.said
        mark.open += row.resolved is None
        if row.observation is not None:
            key = row.observation.image_id
            mark.images[key] = mark.images.get(key, 0) + row.said
    unresolved = [row for row in rows if row.resolved is None]
    quotes = [(spots[row.pk][0], row) for row in unresolved if row.on == On.WORDS]
    return {"spots": list(marks.values()), "quotes": quotes, "open": len(unresolved)}
