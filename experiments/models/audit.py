"""The audit log: who did what to which row, when and from where. Only `experiments.core.audit` writes it; entries
never change."""

from __future__ import annotations

from typing import Any, NoReturn

from django.conf import settings
from django.db import models
from django.utils import timezone

from experiments.models import stored

NAME_CHARS, VERB_CHARS, KIND_CHARS, WORDS_CHARS, AGENT_CHARS = 150, 60, 60, 200, 200


class AppendOnly(Exception):
    """An attempt to change or remove an audit entry. The database refuses it too."""


class AuditEntries(models.QuerySet["AuditEntry"]):
    """Entries that are only added."""

    def update(self, **kwargs: Any) -> NoReturn:  # noqa: ARG002 - Django's signature
        raise AppendOnly("What is recorded is not changed.")

    def delete(self) -> NoReturn:
        raise AppendOnly("What is recorded is not removed.")


class AuditEntry(models.Model):
    """One recorded action. Names and words are kept as they were, so that they outlive what they name."""

    time = models.DateTimeField(default=timezone.now)
    # Keys without a constraint: people, tokens and rows may be deleted, and the entry stays.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.DO_NOTHING, null=True, related_name="+", db_constraint=False, db_index=False
    )
    name = models.CharField(max_length=NAME_CHARS, blank=True, help_text="of the user; empty for the system")
    verb = models.CharField(max_length=VERB_CHARS, help_text="such as run.paused")
    row_kind = models.CharField(max_length=KIND_CHARS, blank=True, help_text="what the row is, such as run")
    row_pk = models.BigIntegerField(null=True)
    row_words = models.CharField(max_length=WORDS_CHARS, blank=True, help_text="the row in words, as it was then")
    details = stored.ShapedJSONField(default=dict)
    address = models.GenericIPAddressField(null=True)
    agent = models.CharField(max_length=AGENT_CHARS, blank=True, help_text="what the browser or script calls itself")
    token = models.CharField(max_length=WORDS_CHARS, blank=True, help_text="the API token that was used, in words")

    objects = AuditEntries.as_manager()

    class Meta:
        ordering = ["-time", "-pk"]
        indexes = [
            models.Index(fields=["time", "id"], name="audit_by_time"),
            models.Index(fields=["name", "time", "id"], name="audit_by_name"),
            models.Index(fields=["verb", "time", "id"], name="audit_by_verb"),
            models.Index(fields=["row_kind", "row_pk", "time", "id"], name="audit_by_row"),
        ]

    def __str__(self) -> str:
        return f"{self.name or 'system'} {self.verb} {self.row_words}".strip()

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save a new entry. Raises AppendOnly for one that is already recorded."""
        if not self._state.adding:
            raise AppendOnly("What is recorded is not changed.")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:  # noqa: ARG002 - Django's signature
        raise AppendOnly("What is recorded is not removed.")
