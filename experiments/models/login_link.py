"""One-time links that sign a person in without a password, as `make run` prints on the terminal."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.utils import timezone

LASTS = timedelta(hours=24)
"""How long a link that nobody used stays good."""


class LoginLink(models.Model):
    """Good for one sign-in. Only a hash is kept: who reads the database cannot sign in with it."""

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
        """A new token for this user; it goes into the address `/enter/<token>/` and is told to nobody else."""
        token = secrets.token_urlsafe(32)
        cls.objects.create(user=user, hash=digest(token), made_by=made_by)
        return token

    @classmethod
    def find(cls, token: str) -> LoginLink | None:
        """The link with its user, if the token is good. Looking does not spend it."""
        fresh = cls.objects.filter(hash=digest(token), used=None, created__gt=timezone.now() - LASTS)
        return fresh.select_related("user").filter(user__is_active=True).first()

    @classmethod
    def redeem(cls, token: str) -> User | None:
        """The user, if the token is good; from then on it is not. Of two at the same moment one succeeds."""
        link = cls.find(token)
        if link is None or not cls.objects.filter(pk=link.pk, used=None).update(used=timezone.now()):
            return None
        return User.objects.get(pk=link.user_id)


def digest(token: str) -> str:
    """A plain hash is enough: the token is random and long."""
    return hashlib.sha256(token.encode()).hexdigest()
