"""Notifications of a person: a few words and a link."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

WORDS_CHARS = 300
URL_CHARS = 400


class NotificationKind(models.TextChoices):
    MENTION = "mention", "Mentions"
    REPLY = "reply", "Replies"
    RUN = "run", "Runs of mine"
    REVIEW = "review", "Reviews"


class Notification(models.Model):
    """A notification, created by `notifications.notify_person`."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="notifications", db_index=False)
    kind = models.CharField(max_length=20, choices=NotificationKind.choices)
    words = models.CharField(max_length=WORDS_CHARS)
    url = models.CharField(max_length=URL_CHARS)
    """Without MAIA_PREFIX, which may change."""
    created = models.DateTimeField(default=timezone.now)
    read = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["user", "-id"], name="notifications_of_a_user"),
            models.Index(fields=["user"], condition=Q(read=None), name="unread_notifications"),
        ]

    @property
    def address(self) -> str:
        """Return the address of the link, for pages and the API."""
        return settings.PREFIX + self.url if self.url else ""

    def __str__(self) -> str:
        return f"{self.user}: {self.words}"
