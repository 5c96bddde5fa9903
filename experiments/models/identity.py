"""Identities of single sign-on: which account a person of the OpenID provider has."""

from __future__ import annotations

from django.conf import settings
from django.db import models

MAX_SUBJECT = 191
"""Maximum characters of a subject."""


class Identity(models.Model):
    """A person at an OpenID provider, connected to an account."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="identities")
    provider = models.CharField(max_length=200, help_text="derived from the issuer: its people are other people")
    subject = models.CharField(max_length=MAX_SUBJECT, help_text="the provider's id of the person")
    claims = models.JSONField(default=dict, help_text="name and e-mail address at the provider")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["provider", "subject"], name="one_account_an_identity")]

    def __str__(self) -> str:
        return f"{self.subject} of {self.provider}"
