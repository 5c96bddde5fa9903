"""One-time links that sign a person in without a password; `make run` prints one on the terminal."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.utils import timezone

LASTS = timedelta(hours=24)
"""How long an unused link stays valid."""


class LoginLink(models.Model):
    """A link for one sign-in. Only its hash is stored, so that readers of the database cannot sign in with it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="login_links")
    hash = models.CharField(max_length=64, unique=True)
    created = models.DateTimeField(default=timezone.now)
    used = models.DateTimeField(null=True)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="+", help_text="None: the terminal"
    )

    def __str__(self) -> str:
        return f"link of {self.user}, {'used' if self.used else 'unused'}"

    @classmethod
    def issue(cls, user: User, made_by: User | None = None) -> str:
        """Create a token for this user and return it; it goes into the address `/enter/<token>/` and is not shown
        elsewhere."""
        token = secrets.token_urlsafe(32)
        cls.objects.create(user=user, hash=digest(token), made_by=made_by)
        return token

    @classmethod
    def find(cls, token: str) -> LoginLink | None:
        """Return the link with its user, if the token is valid. This does not use it up."""
        fresh = cls.objects.filter(hash=digest(token), used=None, created__gt=timezone.now() - LASTS)
        return fresh.select_related("user").filter(user__is_active=True).first()

    @classmethod
    def redeem(cls, token: str) -> User | None:
        """Return the user if the token is valid, and use it up."""
        link = cls.find(token)
        # The update checks again: of two simultaneous calls one succeeds.
        if link is None or not cls.objects.filter(pk=link.pk, used=None).update(used=timezone.now()):
            return None
        return User.objects.get(pk=link.user_id)


def digest(token: str) -> str:
    # A plain hash suffices: the token is random and long.
    return hashlib.sha256(token.encode()).hexdigest()
