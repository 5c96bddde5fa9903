"""What a backup is: a tar file of our own, the same whatever database it comes from and goes to.

In this order: `format.json`; `rows/<table>.jsonl.gz`, whose first line names the columns and each other line is a row;
`images/<key>.png`, each as it lies in the store; `manifest.json`, with how many rows of each table there are, and the
SHA-256 of each member before it, of the images all together.
"""

from __future__ import annotations

import fcntl
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

from django.apps import apps
from django.conf import settings
from django.db import connection
from django.db.models import Model

from workers.errors import RequestError

_T = TypeVar("_T")

FORMAT, VERSION = "maia-backup", 1
HEAD, MANIFEST = "format.json", "manifest.json"
ROWS = re.compile(r"rows/(\w+)\.jsonl\.gz")
IMAGES = re.compile(r"images/([0-9a-f]{64})\.png")
LINE = 128 << 20
"""Bytes of a row, at most. An imported event has 32 MiB, and thrice that if every letter of it is written as an escape;
what a program leaves to the next has 43 MiB in Base64."""
IMAGE = 128 << 20
"""Bytes of an image, at most."""
SMALL = 1 << 20
"""Bytes of the head and of the manifest, at most."""

_LEFT_OUT = frozenset(
    {
        # Of Django's own, made by `migrate`, with numbers that differ from database to database
        *("admin.LogEntry", "auth.Permission", "auth.Group_permissions", "auth.User_user_permissions"),
        *("contenttypes.ContentType", "sessions.Session", "account.EmailConfirmation"),
        # What a copy must not bring back: who is signed in, and how to get in once
        *("experiments.Session", "experiments.SignInAttempts", "experiments.LoginLink", "experiments.IdempotencyKey"),
        # Of this place alone: its code, and files in its state folder
        *("experiments.CodeVersion", "experiments.Export"),
    }
)
_LOCK = 0x6D616961
"""Whoever copies or removes what is kept holds the lock of this number, "maia"."""


class BackupError(RequestError):
    """Raised when a backup cannot be made or restored; it says why, and nothing was changed."""


@dataclass(frozen=True)
class Head:
    """The first member: which reader it takes."""

    format: str
    version: int
    schema: str
    """The newest migration of whoever wrote it."""
    made: str
    """When, in ISO 8601; what is in it is of this moment."""
    code: str
    """Which code wrote it, as workers compare it."""


@dataclass(frozen=True)
class Manifest:
    """The last member: a file without it was cut."""

    rows: dict[str, int]
    """Table -> how many rows."""
    hashes: dict[str, str]
    """Member -> its SHA-256; of all images in their order under "images"."""
    images: int | None
    """How many images are in it; None where they were left out."""
    lost: int = 0
    """Images whose file was not there when it was made."""


def list_tables() -> list[type[Model]]:
    """The tables that a backup holds, in an order of their own."""
    tables = [each for each in apps.get_models(include_auto_created=True) if each._meta.label not in _LEFT_OUT]
    return sorted(tables, key=lambda each: str(each._meta.db_table))


def split(rows: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """In lists of `size`, the last of them shorter."""
    left = iter(rows)
    while some := list(islice(left, size)):
        yield some


@contextmanager
def hold_lock() -> Iterator[None]:
    """One at a time copies what is kept, or removes some of it. Raises BackupError while somebody else does."""
    busy = "A backup, or manage.py prune, is under way here: try again when it is done."
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK])
            if not cursor.fetchone()[0]:
                raise BackupError(busy)
            try:
                yield
            finally:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
        return
    with (Path(settings.STATE) / "keeping.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupError(busy) from None
        yield
