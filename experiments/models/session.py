"""Sessions of browsers, in a table that knows whose they are, written by `experiments.core.sessions` alone; and
tries to sign in that had no success yet, written by `experiments.accounts.throttle` alone."""

from __future__ import annotations

from importlib import import_module

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models


class Session(AbstractBaseSession):
    """One browser that is, or was, signed in. Without its row it is signed out."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="sessions")

    def __str__(self) -> str:
        return f"session of {self.user}" if self.user else "session of a visitor"

    @classmethod
    def get_session_store_class(cls) -> type[SessionBase]:
        store: type[SessionBase] = import_module(settings.SESSION_ENGINE).SessionStore
        return store


class SignInAttempts(models.Model):
    """Tries that are counted together: those on an account, from an address, or both. The key is a hash."""

    key = models.CharField(max_length=64, unique=True)
    count = models.PositiveIntegerField(default=0)
    last = models.DateTimeField(db_index=True)
    until = models.DateTimeField(help_text="before this, tries are refused unlooked")

    class Meta:
        verbose_name_plural = "attempts"

    def __str__(self) -> str:
        return f"{self.count} attempts, closed until {self.until:%H:%M:%S}"
