"""Compare the code of a worker with the version that `manage.py migrate` wrote into the database.

Workers check it before they claim anything, so that no round is run half by one version and half by another.
"""

from __future__ import annotations

import hashlib
import time
from functools import cache
from typing import Any

from django.conf import settings
from django.db.migrations.loader import MigrationLoader
from django.db.models.signals import post_migrate
from django.dispatch import receiver

from experiments.models import CodeVersion

LOOK_SECONDS = 5.0
"""How long a worker relies on the version that it last read, in seconds."""
_CODE = ("experiments", "workers", "maia_web")

# One entry under "": a dictionary can be changed without `global`.
_read: dict[str, tuple[float, str]] = {}


@cache
def fingerprint() -> str:
    """Return the first 12 digits of the SHA-256 of all Python files, as they were at the first call in this process."""
    digest = hashlib.sha256()
    for folder in _CODE:
        # Sorted: folders list their files in any order.
        for path in sorted((settings.BASE_DIR / folder).rglob("*.py")):
            # The zero bytes mark where a name ends and where its content does.
            digest.update(str(path.relative_to(settings.BASE_DIR)).encode() + b"\0")
            digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


@cache
def newest_migration() -> str:
    """Return the name of the last migration that this code has."""
    return max(name for app, name in MigrationLoader(None).disk_migrations if app == "experiments")


def explain_difference() -> str:
    """Explain why this process must not claim anything, with the remedy; "" if its code matches the database."""
    at, words = _read.get("", (float("-inf"), ""))
    if time.monotonic() - at < LOOK_SECONDS:
        return words
    words = _explain(CodeVersion.objects.order_by("pk").last())
    _read[""] = (time.monotonic(), words)
    return words


def recall_difference() -> str:
    """Return the last result of `explain_difference` in this process, without reading the database."""
    return _read.get("", (0.0, ""))[1]


def forget() -> None:
    """Read the version again at the next check."""
    _read.clear()


def _explain(row: CodeVersion | None) -> str:
    # Without a row the database was never migrated by a version that writes one.
    if row is None or (row.version, row.schema) == (fingerprint(), newest_migration()):
        return ""
    return (
        f"This worker has version {fingerprint()} of the code (migrations up to {newest_migration()}), and the "
        f"database was last migrated by version {row.version} ({row.schema}): it claims nothing. Give it the same code "
        "as the others, or run `manage.py migrate` with this one if it is the newer."
    )


@receiver(post_migrate, dispatch_uid="write_code_version")
def write_version(sender: Any, using: str, **_: Any) -> None:
    """Write this code's version into the database. Does nothing if the migration went back to before the table
    existed."""
    if sender.name != "experiments" or CodeVersion._meta.db_table not in _list_tables(using):
        return
    ours = {"version": fingerprint(), "schema": newest_migration()}
    CodeVersion.objects.using(using).update_or_create(pk=1, defaults=ours)


def _list_tables(using: str) -> list[str]:
    from django.db import connections

    return connections[using].introspection.table_names()
