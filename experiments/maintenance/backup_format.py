"""Define the format of a backup: a tar file that is independent of the kind of database.

In this order: `format.json`; `rows/<table>.jsonl.gz`, whose first line names the columns and each other line is a
row; `images/<key>.png`, unchanged from the store; `manifest.json`, with the number of rows of each table, and the
SHA-256 of each earlier member, of the images all together.
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
"""Maximum bytes of a row. An imported event has 32 MiB, and three times that if every letter is written as an
escape; what a program leaves to the next has 43 MiB in Base64."""
IMAGE = 128 << 20
"""Maximum bytes of an image."""
SMALL = 1 << 20
"""Maximum bytes of the head and of the manifest."""

_LEFT_OUT = frozenset(
    {
        # Django's own tables, created by `migrate`, with keys that differ between databases
        *("admin.LogEntry", "auth.Permission", "auth.Group_permissions", "auth.User_user_permissions"),
        *("contenttypes.ContentType", "sessions.Session"),
        # Not to be restored: who is signed in, and one-time ways to sign in
        *("experiments.Session", "experiments.SignInAttempts", "experiments.LoginLink", "experiments.IdempotencyKey"),
        # Specific to this installation: its code, and files in its state folder
        *("experiments.CodeVersion", "experiments.Export"),
    }
)
_LOCK = 0x6D616961
"""Number of the lock, "maia", which is held while data are copied or removed."""


class BackupError(RequestError):
    """A backup cannot be made or restored; the message says why, and nothing was changed."""


@dataclass(frozen=True)
class Head:
    """The first member, which tells a reader the format."""

    format: str
    version: int
    schema: str
    """The newest migration of the writer."""
    made: str
    """When it was made, in ISO 8601; the contents are of this moment."""
    code: str
    """The code that wrote it, as workers compare it."""


@dataclass(frozen=True)
class Manifest:
    """The last member: a file without it was cut off."""

    rows: dict[str, int]
    """Table -> number of rows."""
    hashes: dict[str, str]
    """Member -> its SHA-256; under "images", that of all images in order."""
    images: int | None
    """Number of images in it; None if they were left out."""
    lost: int = 0
    """Images whose file was missing when it was made."""


def list_tables() -> list[type[Model]]:
    """Return the tables that a backup contains, in a fixed order."""
    tables = [each for each in apps.get_models(include_auto_created=True) if each._meta.label not in _LEFT_OUT]
    return sorted(tables, key=lambda each: str(each._meta.db_table))


def split(rows: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Yield lists of `size`; the last may be shorter."""
    left = iter(rows)
    while some := list(islice(left, size)):
        yield some


@contextmanager
def hold_lock() -> Iterator[None]:
    """Hold the lock: only one process at a time copies or removes data. Raises BackupError if another holds it."""
    busy = "A backup, or manage.py prune, is under way here: try again when it is done."
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # The lock belongs to the connection, so a process that is killed leaves none.
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
