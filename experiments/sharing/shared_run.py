"""Context of a shared run: its transcript as it is now, page by page, redacted for readers without an account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from experiments.comments import lists as comment_lists
from experiments.core import blindness
from experiments.core.display_name import person
from experiments.core.paging import Page
from experiments.core.system_names import SystemNameMasker
from experiments.core.thumbnails import SIZES
from experiments.display.answers import render_answer
from experiments.display.events import render_events
from experiments.display.prose import MENTION
from experiments.exchange import run_html
from experiments.exchange.redaction import redact
from experiments.models import Comment, Run, Share
from workers.record.events import Audience

PER_PAGE = 200
"""Events per page. Most runs have fewer."""


@dataclass(frozen=True)
class SharedComment:
    """A comment with the author's name as outsiders see it."""

    author: str
    comment: Comment
    text: str


@dataclass(frozen=True)
class SharedThread:
    where: str
    quote: str
    is_resolved: bool
    comments: Sequence[SharedComment]


def read_shared_run(share: Share, run: Run, token: str, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the template context of a shared run, or of one run of a shared study. The number of queries is
    constant."""
    page = Page.of(params, run.last_seq, PER_PAGE)
    # Events are numbered from 1 without gaps, so pages are ranges of numbers and need no offset.
    events = run.events.filter(seq__range=(page.first, page.end)).order_by("seq")
    # A link may be opened by people who still have to review the run blind
    speaks = share.show_comments and not blindness.is_under_review(run.pk)
    talks = threads(run, show_names=share.show_names) if speaks else {}
    shown = redact(events, Audience.LINK, show_names=share.show_names)
    pictures = SharedImages(token)
    drawn = render_events(run, shown, SystemNameMasker(None), Audience.LINK, pictures)
    return {
        **run_html.head(run),
        **({} if share.show_names else {"asked_by": ""}),
        "share": share,
        # The answer stands at the top of the first page only.
        "answer": render_answer(run, SystemNameMasker(None), Audience.LINK, pictures) if page.number == 1 else "",
        "names": SystemNameMasker(None),
        "page": page,
        "events": [(html, talks.get(event.seq, [])) for event, html in drawn],
        "about_the_run": talks.get(None, []) if page.number == 1 else [],
        "end": f"{page.url(page.last)}#e{run.last_seq}" if run.has_ended else "",
    }


class SharedImages:
    """URLs of images under a link. They are reversed once, since a page has hundreds."""

    def __init__(self, token: str) -> None:
        # A placeholder with the shape of a key: each URL is then made by replacing it
        self.any = "0" * 64
        self.png = reverse("shared-image", args=[token, self.any])
        self.thumbnail = reverse("shared-thumbnail", args=[token, self.any, SIZES[-1]])

    def small(self, key: str) -> str:
        return self.thumbnail.replace(self.any, key)

    def whole(self, key: str) -> str:
        return self.png.replace(self.any, key)


# --- comments ---


def threads(run: Run, *, show_names: bool) -> dict[int | None, list[SharedThread]]:
    """Return the threads by event; None is the run as a whole. Without names, people are numbered and mentions are
    removed."""
    names: dict[int, str] = {}
    found: dict[int | None, list[SharedThread]] = {}
    for talk in comment_lists.thread_views(run, comment_lists.threads(run)):
        comments = []
        for said in talk.comments:
            if said.deleted is None and show_names:
                comments.append(SharedComment(person(said.author), said, said.text))
            elif said.deleted is None:
                # Numbered in the order of their first comment, so one person has one number on the page.
                name = names.setdefault(said.author_id, f"Person {len(names) + 1}")
                comments.append(SharedComment(name, said, MENTION.sub("@…", said.text)))
        # A thread whose comments are all deleted is not shown.
        if comments:
            thread = SharedThread(_describe_anchor(talk), talk.thread.quote, talk.thread.resolved is not None, comments)
            found.setdefault(talk.seq, []).append(thread)
    return found


def _describe_anchor(talk: comment_lists.ThreadView) -> str:
    """Describe what was commented on, for readers who do not see event numbers."""
    if talk.seq is None:
        return "Comments on the run"
    named = talk.thread.experiment is not None
    return f"Comments on {talk.where[0].lower()}{talk.where[1:]}" if named else "Comments on the part above"
