"""What the page under a link shows: the run as of now, page by page, and which images belong to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.urls import reverse
from django.utils.safestring import SafeString

from experiments.comments import lists as comment_lists
from experiments.core import blindness
from experiments.core.display_name import person
from experiments.core.paging import Page
from experiments.core.system_names import Names
from experiments.core.thumbnails import SIZES
from experiments.display.events import render_events
from experiments.display.prose import MENTION
from experiments.exchange import run_html
from experiments.models import Comment, Event, Run, Share
from experiments.sharing.redaction import redact
from workers.record.events import Audience

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


@dataclass(frozen=True)
class RenderedEvent:
    """An event as HTML, and what was said of it."""

    html: SafeString
    threads: Sequence[SharedThread]


def read_shared_run(share: Share, token: str, params: Mapping[str, str]) -> dict[str, Any]:
    """All that the template shows. The number of queries does not depend on how much that is."""
    run = share.run
    page = Page.of(params, run.last_seq, PER_PAGE)
    events = run.events.filter(seq__range=(page.first, page.end)).order_by("seq")
    speaks = share.show_comments and not blindness.is_under_review(run.pk)
    talks = threads(run, show_names=share.show_names) if speaks else {}
    return {
        **run_html.head(run),
        **({} if share.show_names else {"asked_by": ""}),
        "share": share,
        "names": Names(None),
        "page": page,
        "events": draw(share, events, token, talks),
        "about_the_run": talks.get(None, []) if page.number == 1 else [],
        "end": f"{page.url(page.last)}#e{run.last_seq}" if run.has_ended else "",
    }


def draw(
    share: Share, events: Iterable[Event], token: str, talks: Mapping[int | None, Sequence[SharedThread]]
) -> list[RenderedEvent]:
    """The events as an outsider is shown them, each with what was said of it."""
    shown = redact(events, Audience.LINK, show_names=share.show_names)
    drawn = render_events(share.run, shown, Names(None), Audience.LINK, SharedImages(token))
    return [RenderedEvent(html, talks.get(event.seq, [])) for event, html in drawn]


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


def has_image(share: Share, key: str) -> bool:
    """Whether the image was logged in the run of this share."""
    return share.run.observations.filter(Q(image=key) | Q(masked=key)).exists()


# --- comments ---


def threads(run: Run, *, show_names: bool) -> dict[int | None, list[SharedThread]]:
    """What was said, by the event that it is about; None for the run as a whole."""
    names: dict[int, str] = {}
    found: dict[int | None, list[SharedThread]] = {}
    for talk in comment_lists.thread_views(run, comment_lists.threads(run)):
        comments = [share_comment(each, names, show_names) for each in talk.comments if each.deleted is None]
        if comments:
            thread = SharedThread(describe_anchor(talk), talk.thread.quote, talk.thread.resolved is not None, comments)
            found.setdefault(talk.seq, []).append(thread)
    return found


def describe_anchor(talk: comment_lists.ThreadView) -> str:
    """What was commented on, for readers who see no numbers of events."""
    if talk.seq is None:
        return "Comments on the run"
    named = talk.thread.experiment is not None
    return f"Comments on {talk.where[0].lower()}{talk.where[1:]}" if named else "Comments on what stands above"


def share_comment(comment: Comment, names: dict[int, str], show_names: bool) -> SharedComment:
    """Without names, people are told apart by number, and whom they mention is not told."""
    if show_names:
        return SharedComment(person(comment.author), comment, comment.text)
    name = names.setdefault(comment.author_id, f"Person {len(names) + 1}")
    return SharedComment(name, comment, MENTION.sub("@…", comment.text))
