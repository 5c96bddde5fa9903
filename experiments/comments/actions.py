"""Actions of comments: start, reply to and resolve threads; edit and delete comments.

Each is one transaction with its audit entry, and tells open pages of the run to reload their comments.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from experiments.comments import lists
from experiments.core import audit, notifications, notify
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.display_name import person
from experiments.core.errors import InvalidInput, StateConflict
from experiments.core.params import clean_text
from experiments.display import prose
from experiments.models import Comment, NotificationKind, Run, Thread
from experiments.models.comment import TEXT_CHARS

MAX_MENTIONS_OF_COMMENT = 20
"""People that one comment can mention. Further names stay plain text."""


@dataclass(frozen=True)
class WrittenComment:
    """A comment that was written. `notice` is a warning for its author, or ""."""

    comment: Comment
    notice: str


@transaction.atomic
def start_thread(actor: Actor, thread: Thread, text: str) -> WrittenComment:
    """Save a new thread with its first comment. Raises InvalidInput, PermissionDenied."""
    require_sight(actor.person, thread.run)
    text = _clean_text(text)
    thread.save()
    return _add(actor, thread, text)


@transaction.atomic
def reply(actor: Actor, thread: Thread, text: str) -> WrittenComment:
    """Add a comment, which reopens a resolved thread. Raises InvalidInput, PermissionDenied."""
    require_sight(actor.person, thread.run)
    text = _clean_text(text)
    # Locked: it may be resolved at the same moment
    held = Thread.objects.select_for_update().get(pk=thread.pk)
    if held.resolved is not None:
        _set_resolved(actor, held, False)
    return _add(actor, held, text)


def _add(actor: Actor, thread: Thread, text: str) -> WrittenComment:
    comment = Comment.objects.create(thread=thread, author=actor.person, text=text)
    audit.record(actor, Verb.COMMENT_WRITTEN, comment, run=thread.run_id, thread=thread.pk)
    notice = _mention(comment, set())
    author, where = person(actor.person), notifications.name_run(thread.run)
    notified = [actor.person.pk, *comment.mentions.values_list("pk", flat=True)]
    for member in list_members().filter(comments__thread=thread).exclude(pk__in=notified).distinct():
        words = f"{author} replied in a thread of yours on {where}."
        notifications.notify_person(member, NotificationKind.REPLY, words, comment.get_absolute_url())
    _publish(thread.run_id)
    return WrittenComment(comment, notice)


@transaction.atomic
def edit(actor: Actor, comment: Comment, text: str) -> WrittenComment:
    """Change the text of one's own comment. Earlier texts are kept. Raises InvalidInput, PermissionDenied."""
    held = _lock_own(actor.person, comment)
    text = _clean_text(text)
    if text == held.text:
        return WrittenComment(held, "")
    before = set(held.mentions.values_list("pk", flat=True))
    held.wordings.create(text=held.text)
    held.text, held.edited = text, timezone.now()
    held.save(update_fields=["text", "edited"])
    audit.record(actor, Verb.COMMENT_EDITED, held, run=held.thread.run_id)
    notice = _mention(held, before)
    _publish(held.thread.run_id)
    return WrittenComment(held, notice)


@transaction.atomic
def delete(actor: Actor, comment: Comment) -> Comment:
    """Delete one's own comment with its earlier texts. Only the fact that there was one stays."""
    held = _lock_own(actor.person, comment)
    held.wordings.all().delete()
    held.mentions.clear()
    held.text, held.deleted = "", timezone.now()
    held.save(update_fields=["text", "deleted"])
    audit.record(actor, Verb.COMMENT_DELETED, held, run=held.thread.run_id)
    _publish(held.thread.run_id)
    return held


@transaction.atomic
def resolve(actor: Actor, thread: Thread, resolved: bool) -> Thread:
    """Resolve or reopen a thread. Repeating it changes nothing. Raises PermissionDenied."""
    require_sight(actor.person, thread.run)
    held = Thread.objects.select_for_update().get(pk=thread.pk)
    if (held.resolved is not None) != resolved:
        _set_resolved(actor, held, resolved)
        _publish(held.run_id)
    return held


def _set_resolved(actor: Actor, thread: Thread, resolved: bool) -> None:
    thread.resolved, thread.resolved_by = (timezone.now(), actor.person) if resolved else (None, None)
    thread.save(update_fields=["resolved", "resolved_by"])
    audit.record(actor, Verb.THREAD_RESOLVED if resolved else Verb.THREAD_REOPENED, thread, run=thread.run_id)


# --- what is checked ---------------------------------------------------------------------------------


def require_sight(user: User, run: Run) -> None:
    """Raise PermissionDenied if the user must review the run before seeing comments on it."""
    if lists.is_hidden_from(user, run):
        raise PermissionDenied(lists.HIDDEN)


def _lock_own(user: User, comment: Comment) -> Comment:
    """Return the comment, locked. Raises StateConflict if it was deleted, PermissionDenied if another person wrote
    it."""
    held = Comment.objects.select_for_update().get(pk=comment.pk)
    if held.author_id != user.pk:
        raise PermissionDenied("Only the author of a comment can change it.")
    require_sight(user, held.thread.run)
    if held.deleted is not None:
        raise StateConflict("This comment was deleted: it cannot be changed any more.")
    return held


def _clean_text(text: str) -> str:
    """Return the text as it is stored. Raises InvalidInput."""
    text = clean_text(text.replace("\r\n", "\n")).strip()
    if not text:
        raise InvalidInput("Write something first.", "text")
    if len(text) > TEXT_CHARS:
        raise InvalidInput(f"A comment has at most {TEXT_CHARS:,} characters; this one has {len(text):,}.", "text")
    return text


def _publish(run_id: int) -> None:
    """Tell pages that show comments on the run to reload them."""
    notify.publish_topic(f"comments.run.{run_id}")


# --- who is meant by @name ---------------------------------------------------------------------------


def list_members() -> QuerySet[User]:
    """Return all users who can be mentioned."""
    return User.objects.filter(member__isnull=False, is_active=True).order_by("username")


def _find_mentions(text: str) -> tuple[list[User], list[str]]:
    """Return the members that a text mentions, in order and without repeats, and the names that belong to no member.
    One query."""
    # An @ in code or in a URL mentions no person
    plain = prose.LINK.sub(" ", prose.CODE.sub(" ", text))
    names = list(dict.fromkeys(match["name"] for match in prose.MENTION.finditer(plain)))[: MAX_MENTIONS_OF_COMMENT * 2]
    wanted = {way for name in names for way in prose.spellings(name)}
    found = {user.get_username(): user for user in list_members().filter(username__in=wanted)}
    meant = {name: next((found[way] for way in prose.spellings(name) if way in found), None) for name in names}
    people = dict.fromkeys(user for user in meant.values() if user is not None)
    return list(people)[:MAX_MENTIONS_OF_COMMENT], [
        prose.spellings(name)[-1] for name, user in meant.items() if user is None
    ]


def _mention(comment: Comment, before: Collection[int]) -> str:
    """Store whom a comment mentions and notify them, except its author and people whom it mentioned before.

    Returns a warning for the author that says who was not notified, and why; "" if there is none.
    """
    members, unknown = _find_mentions(comment.text)
    comment.mentions.set(members)
    run = comment.thread.run
    words = f"{person(comment.author)} mentioned you on {notifications.name_run(run)}."
    for member in members:
        if member.pk not in before and member.pk != comment.author_id:
            notifications.notify_person(member, NotificationKind.MENTION, words, comment.get_absolute_url())
    notices = []
    if unknown:
        names = ", ".join(f"@{name[:40]}" for name in unknown[:5])
        notices.append(f"Not notified, because they are not on this team: {names}.")
    if blind := [person(member) for member in members if lists.is_hidden_from(member, run)]:
        notices.append(f"{', '.join(blind)} will see it after reviewing this run.")
    return " ".join(notices)
