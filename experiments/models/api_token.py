"""Personal tokens, which scripts use instead of signing in, and keys of requests that may be sent twice."""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.db.models import Q
from django.utils import timezone

from experiments.models.login_link import digest

PREFIX = "maia_"
"""Prefix of all tokens, so that a leaked one is recognised."""
READABLE_CHARS = 11
"""Characters of a token that stay readable, to tell tokens apart."""
DAYS = 90
MAX_DAYS = 366
USED_EVERY = timedelta(minutes=1)
"""Precision of `last_used`: a token in constant use costs one write a minute."""


KEPT = timedelta(hours=24)
"""How long an answer is kept for the same request sent again."""


class TokenScope(models.IntegerChoices):
    """Each scope allows everything that the ones before it allow, but never more than the person's role."""

    READ = 1, "Read"
    RUN = 2, "Read and run"
    WRITE = 3, "Everything"


class ApiToken(models.Model):
    """A token. Only its hash is stored, so that readers of the database cannot use it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    hash = models.CharField(max_length=64, unique=True)
    start = models.CharField(max_length=READABLE_CHARS, help_text="its first characters")
    scope = models.PositiveSmallIntegerField(choices=TokenScope.choices, default=TokenScope.READ)
    created = models.DateTimeField(default=timezone.now)
    expires = models.DateTimeField()
    last_used = models.DateTimeField(null=True)
    revoked = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.start}… of {self.user}: {self.name}"

    @property
    def is_good(self) -> bool:
        return self.revoked is None and self.expires > timezone.now()

    @classmethod
    def issue(
        cls, user: User, name: str, scope: TokenScope = TokenScope.READ, days: int = DAYS
    ) -> tuple[ApiToken, str]:
        """Create a token; return it with its text, which is shown once."""
        # The prefix lets secret scanners recognise a leaked token.
        text = PREFIX + secrets.token_urlsafe(32)
        expires = timezone.now() + timedelta(days=days)
        row = cls.objects.create(
            user=user, name=name, hash=digest(text), start=text[:READABLE_CHARS], scope=scope, expires=expires
        )
        return row, text

    @classmethod
    def find(cls, text: str) -> ApiToken | None:
        """Return the token if it is valid and its person may still sign in, and record its use."""
        token = cls.objects.select_related("user").filter(hash=digest(text), user__is_active=True).first()
        if token is None or not token.is_good:
            return None
        now = timezone.now()
        # The condition is in the statement too: of several requests at once only one writes.
        stale = Q(last_used=None) | Q(last_used__lt=now - USED_EVERY)
        if token.last_used is None or token.last_used < now - USED_EVERY:
            cls.objects.filter(stale, pk=token.pk).update(last_used=now)
        return token

    def revoke(self) -> None:
        """Make the token invalid."""
        ApiToken.objects.filter(pk=self.pk, revoked=None).update(revoked=timezone.now())


class IdempotencyKey(models.Model):
    """A key that a client chose, its request, and the answer, so that a repeated request creates nothing new."""

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
