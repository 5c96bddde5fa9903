"""Browser sessions with their users, written only by `experiments.core.sessions`; and failed sign-in attempts,
written only by `experiments.accounts.throttle`."""

from __future__ import annotations

from importlib import import_module

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models


class Session(AbstractBaseSession):
    """A browser's session. Without its row the browser is signed out."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="sessions")

    def __str__(self) -> str:
        return f"session of {self.user}" if self.user else "session of a visitor"

    @classmethod
    def get_session_store_class(cls) -> type[SessionBase]:
        store: type[SessionBase] = import_module(settings.SESSION_ENGINE).SessionStore
        return store


class SignInAttempts(models.Model):
    """Attempts counted together: on an account, from an address, or both. The key is a hash."""

    key = models.CharField(max_length=64, unique=True)
    count = models.PositiveIntegerField(default=0)
    last = models.DateTimeField(db_index=True)
    until = models.DateTimeField(help_text="before this, tries are refused unlooked")

    class Meta:
        verbose_name_plural = "attempts"

    def __str__(self) -> str:
        return f"{self.count} attempts, closed until {self.until:%H:%M:%S}"
