"""Links by which a new person joins the team, in the role that an admin chose."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Literal

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.utils import timezone

from experiments.models.login_link import digest
from experiments.models.member import Role

LASTS = timedelta(days=7)
"""How long an unused invitation stays valid."""
NOTE_CHARS = 200

State = Literal["open", "taken", "revoked", "expired"]


class Invitation(models.Model):
    """An invitation for one person. Only its hash is stored, so that readers of the database cannot join with it."""

    hash = models.CharField(max_length=64, unique=True)
    role = models.PositiveSmallIntegerField(choices=Role.choices, default=Role.RESEARCHER)
    note = models.CharField(max_length=NOTE_CHARS, blank=True, help_text="an e-mail address, or who it is for")
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created = models.DateTimeField(default=timezone.now)
    expires = models.DateTimeField()
    taken = models.DateTimeField(null=True)
    taken_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    revoked = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"invitation as {self.get_role_display()}{f' for {self.note}' if self.note else ''}"

    @property
    def state(self) -> State:
        if self.taken:
            return "taken"
        if self.revoked:
            return "revoked"
        return "open" if self.expires > timezone.now() else "expired"

    @classmethod
    def issue(cls, made_by: User | None, role: Role, note: str = "") -> tuple[Invitation, str]:
        """Create an invitation; return it with its token, which goes into the address `/join/<token>/` and is shown
        once."""
        # Only the hash is stored: readers of the database cannot join with it.
        token = secrets.token_urlsafe(32)
        expires = timezone.now() + LASTS
        return cls.objects.create(made_by=made_by, role=role, note=note, hash=digest(token), expires=expires), token

    @classmethod
    def find(cls, token: str) -> Invitation | None:
        """Return the invitation, whether valid or not."""
        return cls.objects.filter(hash=digest(token)).first()

    @classmethod
    def still_open(cls) -> models.QuerySet[Invitation]:
        return cls.objects.filter(taken=None, revoked=None, expires__gt=timezone.now())

    def take(self, user: User) -> bool:
        """Use the invitation; return True if it was still valid."""
        # The update checks again: of two simultaneous calls one succeeds.
        return bool(Invitation.still_open().filter(pk=self.pk).update(taken=timezone.now(), taken_by=user))

    def revoke(self) -> bool:
        """Revoke the invitation; return True if it was still valid."""
        return bool(Invitation.still_open().filter(pk=self.pk).update(revoked=timezone.now()))
