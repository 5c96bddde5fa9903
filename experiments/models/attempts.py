"""How often somebody tried to sign in, with no success yet. Written by `experiments.accounts.throttle` alone."""

from __future__ import annotations

from django.db import models


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
