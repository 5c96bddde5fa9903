"""The version of the code that last migrated the database."""

from __future__ import annotations

from django.db import models


class CodeVersion(models.Model):
    """One row, written by `manage.py migrate`. Workers of another version do not claim runs."""

    version = models.CharField(max_length=40)
    schema = models.CharField(max_length=120, help_text="the newest migration")
    written = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.version} ({self.schema})"
