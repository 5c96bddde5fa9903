"""Prepare rows before anything is locked, then insert them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection
from django.db.models import Model


class Prepared:
    """New rows of one model as database values. The columns in `late` get their values on insertion.

    The given rows are not kept, and get no keys. Raises ValueError, TypeError or ValidationError for values that
    their fields do not accept.
    """

    def __init__(self, model: type[Model], rows: Iterable[Model], late: Sequence[str]) -> None:
        fields = [field for field in model._meta.local_concrete_fields if not field.primary_key]
        quoted = connection.ops.quote_name
        columns = ", ".join(quoted(str(field.column)) for field in fields)
        values = ", ".join("%s" for _ in fields)
        self.statement = f"INSERT INTO {quoted(model._meta.db_table)} ({columns}) VALUES ({values})"  # noqa: S608 - names of ours
        names = [field.attname for field in fields]
        self.late = [names.index(name) for name in late]
        known = [field if field.attname not in late else None for field in fields]
        # `bulk_create` would compute each value while others wait to write; in a long run that takes most of the time.
        self.rows: list[list[Any]] = [
            [field and field.get_db_prep_save(field.pre_save(row, add=True), connection) for field in known]
            for row in rows
        ]

    def __len__(self) -> int:
        return len(self.rows)

    def insert(self, *late: Sequence[Any]) -> None:
        """Insert the rows in order, in the transaction under way; `late` has the values of each late column, by row."""
        for place, values in zip(self.late, late, strict=True):
            for row, value in zip(self.rows, values, strict=True):
                row[place] = value
        with connection.cursor() as cursor:
            cursor.executemany(self.statement, self.rows)
