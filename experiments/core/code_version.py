"""Which version of the code the database belongs to: written by `manage.py migrate`, compared by workers before they
claim anything, so that no round is played half by one version and half by another."""

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
"""For so long a worker believes what it last read."""
_CODE = ("experiments", "workers", "maia_web")

_read: dict[str, tuple[float, str]] = {}


@cache
def fingerprint() -> str:
    """The first 12 digits of the SHA-256 of all Python files, as they were when this process first asked."""
    digest = hashlib.sha256()
    for folder in _CODE:
        for path in sorted((settings.BASE_DIR / folder).rglob("*.py")):
            digest.update(str(path.relative_to(settings.BASE_DIR)).encode() + b"\0")
            digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


@cache
def newest_migration() -> str:
    """The name of the last migration that this code knows."""
    return max(name for app, name in MigrationLoader(None).disk_migrations if app == "experiments")


def explain_difference() -> str:
    """Why this process must not claim anything, and what to do; "" where its code is the database's."""
    at, words = _read.get("", (float("-inf"), ""))
    if time.monotonic() - at < LOOK_SECONDS:
        return words
    words = _explain(CodeVersion.objects.order_by("pk").last())
    _read[""] = (time.monotonic(), words)
    return words


def recall_difference() -> str:
    """What `explain_difference` found last in this process, without asking the database."""
    return _read.get("", (0.0, ""))[1]


def forget() -> None:
    """Look anew at the next question."""
    _read.clear()


def _explain(row: CodeVersion | None) -> str:
    if row is None or (row.version, row.schema) == (fingerprint(), newest_migration()):
        return ""
    return (
        f"This worker has version {fingerprint()} of the code (migrations up to {newest_migration()}), and the "
        f"database was last migrated by version {row.version} ({row.schema}): it claims nothing. Give it the same code "
        "as the others, or run `manage.py migrate` with this one if it is the newer."
    )


@receiver(post_migrate, dispatch_uid="write_code_version")
def write_version(sender: Any, using: str, **_: Any) -> None:
    """Say whose database this is from now on; nothing where it was migrated back to before there was a table."""
    if sender.name != "experiments" or CodeVersion._meta.db_table not in _list_tables(using):
        return
    ours = {"version": fingerprint(), "schema": newest_migration()}
    CodeVersion.objects.using(using).update_or_create(pk=1, defaults=ours)


def _list_tables(using: str) -> list[str]:
    from django.db import connections

    return connections[using].introspection.table_names()
