"""What the page under a link shows: the run as of now, page by page, as an outsider may read it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.urls import reverse

from experiments.comments import lists as comment_lists
from experiments.core import blindness
from experiments.core.display_name import person
from experiments.core.paging import Page
from experiments.core.system_names import Names
from experiments.core.thumbnails import SIZES
from experiments.display.answers import render_answer
from experiments.display.events import render_events
from experiments.display.prose import MENTION
from experiments.exchange import run_html
from experiments.models import Comment, Event, Run, Share
from workers.record.events import Audience, Replied

PER_PAGE = 200
"""Events of a page; most runs have fewer."""


@dataclass(frozen=True)
class SharedComment:
    """A comment as an outsider is shown it."""

    author: str
    comment: Comment
    text: str


@dataclass(frozen=True)
class SharedThread:
    where: str
    quote: str
    is_resolved: bool
    comments: Sequence[SharedComment]


def read_shared_run(share: Share, token: str, params: Mapping[str, str]) -> dict[str, Any]:
    """All that the template shows. The number of queries does not depend on how much that is."""
    run = share.run
    page = Page.of(params, run.last_seq, PER_PAGE)
    events = run.events.filter(seq__range=(page.first, page.end)).order_by("seq")
    speaks = share.show_comments and not blindness.is_under_review(run.pk)
    talks = threads(run, show_names=share.show_names) if speaks else {}
    shown = redact(events, Audience.LINK, show_names=share.show_names)
    pictures = SharedImages(token)
    drawn = render_events(run, shown, Names(None), Audience.LINK, pictures)
    return {
        **run_html.head(run),
        **({} if share.show_names else {"asked_by": ""}),
        "share": share,
        "answer": render_answer(run, Names(None), Audience.LINK, pictures) if page.number == 1 else "",
        "names": Names(None),
        "page": page,
        "events": [(html, talks.get(event.seq, [])) for event, html in drawn],
        "about_the_run": talks.get(None, []) if page.number == 1 else [],
        "end": f"{page.url(page.last)}#e{run.last_seq}" if run.has_ended else "",
    }


class SharedImages:
    """Of the images under a link: looked up once, for there are hundreds on a page."""

    def __init__(self, token: str) -> None:
        self.any = "0" * 64
        self.png = reverse("shared-image", args=[token, self.any])
        self.thumbnail = reverse("shared-thumbnail", args=[token, self.any, SIZES[-1]])

    def small(self, key: str) -> str:
        return self.thumbnail.replace(self.any, key)

    def whole(self, key: str) -> str:
        return self.png.replace(self.any, key)


# --- events as an outsider is shown them -------------------------------------------------------------

SOMEBODY = "a person"
STOPPED = re.compile(r"Stopped by .+\.", re.DOTALL)


def redact(events: Iterable[Event], audience: Audience, *, show_names: bool) -> list[Event]:
    """The same events, not to be saved: what the table of events hides from this audience is emptied, names of people
    go unless they were asked for. What people wrote in their own words stays as it is."""
    found = []
    for event in events:
        content: Any = event.content
        changed = {name: type(getattr(content, name))() for name in event.row.hidden.get(audience, ())}
        if not show_names:
            changed |= {name: _without_names(name, content) for name in event.row.people if name not in changed}
        shown = Event(run=event.run, seq=event.seq, kind=event.kind, payload=event.payload, time=event.time)
        shown.content = replace(content, **changed)
        found.append(shown)
    return found


def _without_names(field: str, content: Any) -> str:
    """What stands for a field that may name a person: an agent's name, and an end that nobody brought about, stay."""
    text: str = getattr(content, field)
    if isinstance(content, Replied):
        return SOMEBODY if content.by_person else text
    if field == "reason":
        return STOPPED.sub(f"Stopped by {SOMEBODY}.", text) if STOPPED.fullmatch(text) else text
    return SOMEBODY


# --- comments ---


def threads(run: Run, *, show_names: bool) -> dict[int | None, list[SharedThread]]:
    """What was said, by the event that it is about; None for the run as a whole. Without names, people are told apart
    by number, and whom they mention is not told."""
    names: dict[int, str] = {}
    found: dict[int | None, list[SharedThread]] = {}
    for talk in comment_lists.thread_views(run, comment_lists.threads(run)):
        comments = []
        for said in talk.comments:
            if said.deleted is None and show_names:
                comments.append(SharedComment(person(said.author), said, said.text))
            elif said.deleted is None:
                name = names.setdefault(said.author_id, f"Person {len(names) + 1}")
                comments.append(SharedComment(name, said, MENTION.sub("@…", said.text)))
        if comments:
            thread = SharedThread(_describe_anchor(talk), talk.thread.quote, talk.thread.resolved is not None, comments)
            found.setdefault(talk.seq, []).append(thread)
    return found


def _describe_anchor(talk: comment_lists.ThreadView) -> str:
    """What was commented on, for readers who see no numbers of events."""
    if talk.seq is None:
        return "Comments on the run"
    named = talk.thread.experiment is not None
    return f"Comments on {talk.where[0].lower()}{talk.where[1:]}" if named else "Comments on what stands above"
