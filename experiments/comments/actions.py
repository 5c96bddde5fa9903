"""What may be done with comments: threads are started, replied in and resolved, comments edited and deleted, and what
one was told of is read. Each is one transaction with its audit, and has all pages that show the run look again."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils import timezone

from experiments.comments import lists, mentions
from experiments.comments.anchors import Anchor
from experiments.comments.mentions import Mentions
from experiments.core import audit, notifications, notify
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.display_name import person
from experiments.core.errors import InvalidInput, StateConflict
from experiments.core.params import clean_text
from experiments.models import Comment, Run, Thread
from experiments.models.comment import TEXT_CHARS
from experiments.models.notification import NotificationKind


@dataclass(frozen=True)
class WrittenComment:
    """A comment that was written; `notice` is what its writer should know of it, "" for nothing."""

    comment: Comment
    notice: str


def _publish(run_id: int) -> None:
    """Have all pages that show comments on the run look again."""
    notify.publish_topic(f"comments.run.{run_id}")


@transaction.atomic
def start_thread(by: Actor, anchor: Anchor, text: str) -> WrittenComment:
    """A new thread with its first comment. Raises InvalidInput, PermissionDenied."""
    require_sight(by.person, anchor.run)
    text = _clean_text(text)
    thread = Thread.objects.create(**anchor.columns())
    return _add(by, thread, text)


@transaction.atomic
def reply(by: Actor, thread: Thread, text: str) -> WrittenComment:
    """One more comment; a resolved thread is open again. Raises InvalidInput, PermissionDenied."""
    require_sight(by.person, thread.run)
    text = _clean_text(text)
    held = Thread.objects.select_for_update().get(pk=thread.pk)
    if held.resolved is not None:
        _set_resolved(by, held, False)
    return _add(by, held, text)


def _add(by: Actor, thread: Thread, text: str) -> WrittenComment:
    comment = Comment.objects.create(thread=thread, author=by.person, text=text)
    audit.record(by, Verb.COMMENT_WRITTEN, comment, run=thread.run_id, thread=thread.pk)
    meant = mentions.find_mentions(text)
    comment.mentions.set(meant.members)
    _notify(comment, meant.members)
    _publish(thread.run_id)
    return WrittenComment(comment, _notice(meant, comment))


@transaction.atomic
def edit(by: Actor, comment: Comment, text: str) -> WrittenComment:
    """Other words for one's own comment; the earlier ones are kept. Raises InvalidInput, PermissionDenied."""
    held = _lock_own(by.person, comment)
    text = _clean_text(text)
    if text == held.text:
        return WrittenComment(held, "")
    before = set(held.mentions.values_list("pk", flat=True))
    held.wordings.create(text=held.text)
    held.text, held.edited = text, timezone.now()
    held.save(update_fields=["text", "edited"])
    audit.record(by, Verb.COMMENT_EDITED, held, run=held.thread.run_id)
    meant = mentions.find_mentions(text)
    held.mentions.set(meant.members)
    _notify(held, [member for member in meant.members if member.pk not in before], replied=False)
    _publish(held.thread.run_id)
    return WrittenComment(held, _notice(meant, held))


@transaction.atomic
def delete(by: Actor, comment: Comment) -> Comment:
    """Take one's own comment back: neither its words nor the earlier ones are kept, only that there was one."""
    held = _lock_own(by.person, comment)
    held.wordings.all().delete()
    held.mentions.clear()
    held.text, held.deleted = "", timezone.now()
    held.save(update_fields=["text", "deleted"])
    audit.record(by, Verb.COMMENT_DELETED, held, run=held.thread.run_id)
    _publish(held.thread.run_id)
    return held


@transaction.atomic
def resolve(by: Actor, thread: Thread, resolved: bool) -> Thread:
    """Say that a thread needs nothing more, or that it does. Done twice, it is done once. Raises PermissionDenied."""
    require_sight(by.person, thread.run)
    held = Thread.objects.select_for_update().get(pk=thread.pk)
    if (held.resolved is not None) != resolved:
        _set_resolved(by, held, resolved)
        _publish(held.run_id)
    return held


def _set_resolved(by: Actor, thread: Thread, resolved: bool) -> None:
    thread.resolved, thread.resolved_by = (timezone.now(), by.person) if resolved else (None, None)
    thread.save(update_fields=["resolved", "resolved_by"])
    audit.record(by, Verb.THREAD_RESOLVED if resolved else Verb.THREAD_REOPENED, thread, run=thread.run_id)


# --- what is checked, and who is told -----------------------------------------------------------------


def require_sight(user: User, run: Run) -> None:
    """Raises PermissionDenied for who is still to review the run unseen."""
    if lists.is_hidden_from(user, run):
        raise PermissionDenied(lists.HIDDEN)


def _lock_own(user: User, comment: Comment) -> Comment:
    """The comment, locked. Raises StateConflict where it was deleted, PermissionDenied where it is somebody else's."""
    held = Comment.objects.select_for_update().get(pk=comment.pk)
    if held.author_id != user.pk:
        raise PermissionDenied("Only who wrote a comment changes it.")
    require_sight(user, held.thread.run)
    if held.deleted is not None:
        raise StateConflict("This comment was deleted: it cannot be changed any more.")
    return held


def _clean_text(text: str) -> str:
    """The text as it is kept. Raises InvalidInput."""
    text = clean_text(text.replace("\r\n", "\n")).strip()
    if not text:
        raise InvalidInput("Write something first.", "text")
    if len(text) > TEXT_CHARS:
        raise InvalidInput(f"A comment has at most {TEXT_CHARS:,} characters; this one has {len(text):,}.", "text")
    return text


def _notice(meant: Mentions, comment: Comment) -> str:
    """What the writer should know: who was not told, and why."""
    run = comment.thread.run
    blind = [member for member in meant.members if lists.is_hidden_from(member, run)]
    later = f"{', '.join(map(person, blind))} will see it after reviewing this run." if blind else ""
    return " ".join(part for part in (meant.notice, later) if part)


def _notify(comment: Comment, mentioned: list[User], replied: bool = True) -> None:
    """Tell whom the comment means, and who else has written in its thread; nobody twice, nor its author."""
    author, thread = comment.author, comment.thread
    where = notifications.name_run(thread.run)
    known = {author.pk, *(member.pk for member in mentioned)}
    for member in mentioned:
        if member.pk != author.pk:
            notifications.notify_person(
                member,
                NotificationKind.MENTION,
                f"{person(author)} mentioned you on {where}.",
                comment.get_absolute_url(),
            )
    if not replied:
        return
    others = mentions.members().filter(comments__thread=thread).exclude(pk__in=known).distinct()
    for member in others:
        notifications.notify_person(
            member,
            NotificationKind.REPLY,
            f"{person(author)} replied in a thread of yours on {where}.",
            comment.get_absolute_url(),
        )
