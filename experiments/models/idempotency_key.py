"""What was answered to requests that may be sent twice, so that the second one makes nothing new."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone

KEPT = timedelta(hours=24)


class IdempotencyKey(models.Model):
    """A key that a client chose, the request it came with, and the answer."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    request = models.CharField(max_length=64, help_text="hash of method, address and body")
    answer = models.JSONField(default=dict)
    location = models.CharField(max_length=200, blank=True)
    created = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="one_request_per_key")]

    def __str__(self) -> str:
        return f"{self.key} of {self.user}"
