"""The only writer of comments: each change is one transaction with its audit, and rings for all who read the run."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone

from experiments.comments import mentions, reading
from experiments.comments.anchors import Anchor
from experiments.comments.mentions import Mentions
from experiments.core import audit, notifications, notify
from experiments.core.audit import Verb
from experiments.core.display_name import person
from experiments.core.params import clean_text
from experiments.models import Comment, Run, Thread
from experiments.models.comment import TEXT_CHARS
from experiments.models.notification import Kind


class Unfit(ValueError):
    """Raised for a text that cannot be a comment, or a change that comes too late; the message says why."""


@dataclass(frozen=True)
class Said:
    """What was written; `told` is what its writer should know of it, "" for nothing."""

    comment: Comment
    told: str


def topic(run_id: int) -> str:
    """What rings when anything about the comments on a run changes."""
    return f"comments.run.{run_id}"


@transaction.atomic
def start(request: HttpRequest, user: User, anchor: Anchor, text: str) -> Said:
    """A new thread with its first comment. Raises Unfit, PermissionDenied."""
    see(user, anchor.run)
    text = fit(text)
    thread = Thread.objects.create(**anchor.columns())
    return say(request, user, thread, text)


@transaction.atomic
def reply(request: HttpRequest, user: User, thread: Thread, text: str) -> Said:
    """One more comment; a resolved thread is open again. Raises Unfit, PermissionDenied."""
    see(user, thread.run)
    text = fit(text)
    held = Thread.objects.select_for_update().get(pk=thread.pk)
    if held.resolved is not None:
        settle(request, user, held, False)
    return say(request, user, held, text)


def say(request: HttpRequest, user: User, thread: Thread, text: str) -> Said:
    comment = Comment.objects.create(thread=thread, author=user, text=text)
    audit.record(request, Verb.COMMENT_WRITTEN, comment, run=thread.run_id, thread=thread.pk)
    meant = mentions.read(text)
    comment.mentions.set(meant.members)
    tell(comment, meant.members)
    notify.tell(topic(thread.run_id))
    return Said(comment, told(meant, comment))


@transaction.atomic
def edit(request: HttpRequest, user: User, comment: Comment, text: str) -> Said:
    """Other words for one's own comment; the earlier ones are kept. Raises Unfit, PermissionDenied."""
    held = own(user, comment)
    text = fit(text)
    if text == held.text:
        return Said(held, "")
    before = set(held.mentions.values_list("pk", flat=True))
    held.wordings.create(text=held.text)
    held.text, held.edited = text, timezone.now()
    held.save(update_fields=["text", "edited"])
    audit.record(request, Verb.COMMENT_EDITED, held, run=held.thread.run_id)
    meant = mentions.read(text)
    held.mentions.set(meant.members)
    tell(held, [member for member in meant.members if member.pk not in before], replied=False)
    notify.tell(topic(held.thread.run_id))
    return Said(held, told(meant, held))


@transaction.atomic
def delete(request: HttpRequest, user: User, comment: Comment) -> Comment:
    """Take one's own comment back: neither its words nor the earlier ones are kept, only that there was one."""
    held = own(user, comment)
    held.wordings.all().delete()
    held.mentions.clear()
    held.text, held.deleted = "", timezone.now()
    held.save(update_fields=["text", "deleted"])
    audit.record(request, Verb.COMMENT_DELETED, held, run=held.thread.run_id)
    notify.tell(topic(held.thread.run_id))
    return held


@transaction.atomic
def resolve(request: HttpRequest, user: User, thread: Thread, resolved: bool) -> Thread:
    """Say that a thread needs nothing more, or that it does. Done twice, it is done once. Raises PermissionDenied."""
    see(user, thread.run)
    held = Thread.objects.select_for_update().get(pk=thread.pk)
    if (held.resolved is not None) != resolved:
        settle(request, user, held, resolved)
        notify.tell(topic(held.run_id))
    return held


def settle(request: HttpRequest, user: User, thread: Thread, resolved: bool) -> None:
    thread.resolved, thread.resolved_by = (timezone.now(), user) if resolved else (None, None)
    thread.save(update_fields=["resolved", "resolved_by"])
    audit.record(request, Verb.THREAD_RESOLVED if resolved else Verb.THREAD_REOPENED, thread, run=thread.run_id)


# --- what is checked, and who is told -----------------------------------------------------------------


def see(user: User, run: Run) -> None:
    if reading.hides(user, run):
        raise PermissionDenied(reading.HIDDEN)


def own(user: User, comment: Comment) -> Comment:
    """The comment, locked. Raises Unfit where it was deleted, PermissionDenied where it is somebody else's."""
    held = Comment.objects.select_for_update().get(pk=comment.pk)
    if held.author_id != user.pk:
        raise PermissionDenied("Only who wrote a comment changes it.")
    see(user, held.thread.run)
    if held.deleted is not None:
        raise Unfit("This comment was deleted: it cannot be changed any more.")
    return held


def fit(text: str) -> str:
    """The text as it is kept. Raises Unfit."""
    text = clean_text(text.replace("\r\n", "\n")).strip()
    if not text:
        raise Unfit("Write something first.")
    if len(text) > TEXT_CHARS:
        raise Unfit(f"A comment has at most {TEXT_CHARS:,} characters; this one has {len(text):,}.")
    return text


def told(meant: Mentions, comment: Comment) -> str:
    """What the writer should know: who was not told, and why."""
    run = comment.thread.run
    blind = [member for member in meant.members if reading.hides(member, run)]
    later = f"{', '.join(map(person, blind))} will see it after reviewing this run." if blind else ""
    return " ".join(part for part in (meant.told, later) if part)


def tell(comment: Comment, mentioned: list[User], replied: bool = True) -> None:
    """Tell whom the comment means, and who else has written in its thread; nobody twice, nor its author."""
    author, thread = comment.author, comment.thread
    where = notifications.about(thread.run)
    known = {author.pk, *(member.pk for member in mentioned)}
    for member in mentioned:
        if member.pk != author.pk:
            notifications.tell(
                member, Kind.MENTION, f"{person(author)} mentioned you on {where}.", comment.get_absolute_url()
            )
    if not replied:
        return
    others = mentions.members().filter(comments__thread=thread).exclude(pk__in=known).distinct()
    for member in others:
        notifications.tell(
            member, Kind.REPLY, f"{person(author)} replied in a thread of yours on {where}.", comment.get_absolute_url()
        )
