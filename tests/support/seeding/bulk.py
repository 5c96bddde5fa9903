"""Many rows at once, the quickest way each database has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.core.management.color import no_style
from django.db import connection
from django.db.models import Max, Model


def insert(model: type[Model], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows of these columns; values are as the database takes them."""
    table, names = model._meta.db_table, ", ".join(columns)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        else:
            marks = ", ".join(["%s"] * len(columns))
            cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(rows))


def next_key(model: type[Model]) -> int:
    """The key that comes after all."""
    highest: int | None = model._default_manager.aggregate(highest=Max("pk"))["highest"]
    return (highest or 0) + 1


def renumber(*models: type[Model]) -> None:
    """Have the database count on from keys that were given to it."""
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), list(models)):
            cursor.execute(statement)


def hurry() -> None:
    """For this connection: a large cache, and nothing that waits for the disk. A crash may cost the database."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA synchronous = OFF")
            cursor.execute("PRAGMA cache_size = -600000")
        else:
            cursor.execute("SET synchronous_commit = off")
            cursor.execute("SET maintenance_work_mem = '512MB'")


def settle() -> None:
    """Have the database look at what is in it now, so that it plans well."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE" if connection.vendor == "sqlite" else "VACUUM ANALYZE")
