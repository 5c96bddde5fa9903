"""Another connection that holds the database, as a second process would."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def locked_database(table: str) -> Iterator[None]:
    """Hold the database against writers of a table for the length of a block; they wait for a tenth of a second.

    Of a test with `transaction=True`.
    """
    other = connection.copy()
    is_sqlite = connection.vendor == "sqlite"
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 100" if is_sqlite else "SET lock_timeout = '100ms'")
    try:
        other.set_autocommit(False)
        with other.cursor() as cursor:
            cursor.execute("BEGIN IMMEDIATE" if is_sqlite else f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield
    finally:
        other.close()
        connection.close()
