"""Create and list notifications of a person, such as a mention, a reply or the end of their run.

All features create notifications with `notify_person`. Text and address never hold what the person might not see:
they say where to look, and the page there checks access.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.db.models.signals import post_save
from django.dispatch import receiver
from django.utils import timezone

from experiments.core import notify
from experiments.core.display_name import person
from experiments.models import Event, Notification, Run
from experiments.models.notification import URL_CHARS, WORDS_CHARS, NotificationKind
from workers.record.events import kind_of

MAX_COUNT = 99
"""The highest number that the bell shows."""
QUESTION_CHARS = 90
NEWS = {
    "blocked": "waits for a person",
    "waiting_for_person": "waits for a reply that a person writes",
    "concluded": "has concluded",
    "limit_reached": "has reached a limit",
    "cancelled": "was cancelled",
    "failed": "has failed",
}
"""Kinds of events that the owner of a run is notified of."""


def notify_person(user: User, kind: str, words: str, url: str) -> None:
    """Create a notification of a `NotificationKind`. It is not repeated while an equal one is unread."""
    # Without the prefix, which may change with the installation.
    known = {"kind": kind, "words": shorten(words, WORDS_CHARS), "url": url.removeprefix(settings.PREFIX)[:URL_CHARS]}
    if not Notification.objects.filter(user=user, read=None, **known).exists():
        Notification.objects.create(user=user, **known)
        notify.publish_topic(topic(user))


def topic(user: User) -> str:
    """Return the topic whose bell rings when this person gets or reads a notification."""
    return f"user.{user.pk}"


def list_notifications(user: User) -> QuerySet[Notification]:
    """Return all notifications of this person, newest first."""
    return Notification.objects.filter(user=user)


def list_unread(user: User) -> QuerySet[Notification]:
    return list_notifications(user).filter(read=None)


def mark_read(rows: QuerySet[Notification], user: User) -> int:
    """Mark notifications as read by the person; return how many were unread."""
    count = rows.filter(user=user, read=None).update(read=timezone.now())
    if count:
        notify.publish_topic(topic(user))
    return count


def name_run(run: Run) -> str:
    """Return the name of a run in notifications."""
    return f"run {run.pk}, “{shorten(run.question, QUESTION_CHARS)}”"


def shorten(text: str, longest: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


@receiver(post_save, sender=Event)
def tell_owner(instance: Event, *, created: bool, raw: bool, **_: Any) -> None:
    """Notify the owner that the run has ended or waits. A person who writes its replies is notified once of their
    turn."""
    # `raw` rows come from a fixture or a restore: old news.
    if not created or raw or instance.kind not in NEWS:
        return
    run = instance.run
    if kind_of(instance.kind).ends and run.evaluation_items.exists():
        return  # the evaluation reports the end of all its runs together
    if kind_of(instance.kind).ends and run.sweep_id:
        return  # so does the sweep, once
    # By both names: the display name may have changed since.
    own = {f"Stopped by {name}." for name in (person(run.owner), run.owner.get_username())}
    if instance.kind == "cancelled" and getattr(instance.content, "reason", "") in own:
        return  # the owner has stopped it, and so knows
    words = f"Your {name_run(run)} {NEWS[instance.kind]}."
    url = f"{run.get_absolute_url()}?at={instance.seq}#e{instance.seq}"
    earlier = list_notifications(run.owner).filter(kind=NotificationKind.RUN, words=words)
    if instance.kind == "waiting_for_person" and earlier.exists():
        return
    notify_person(run.owner, NotificationKind.RUN, words, url)
