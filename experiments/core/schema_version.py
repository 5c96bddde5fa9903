"""Refuse a database that is too old for this version, before anything in it is changed."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder
from django.db.models.signals import pre_migrate
from django.dispatch import receiver

SQUASHED = ("experiments", "0002_data_sets_and_parts")
"""The second of the squashed migrations: a database that has applied it has tables from before."""


def refuse_older_schema(database: BaseDatabaseWrapper) -> None:
    """Raise CommandError, with the remedy, for a database from before the migrations were squashed."""
    if SQUASHED in MigrationRecorder(database).applied_migrations():
        raise CommandError(
            "This database was made by an earlier version of MAIA Web, whose tables this one cannot take over: export "
            "what you keep with that version, set MAIA_STATE or MAIA_DATABASE_URL to a new place, and import it there."
        )


@receiver(pre_migrate, dispatch_uid="refuse_older_schema")
def before_migrations(using: str, **_: Any) -> None:
    refuse_older_schema(connections[using])
