"""Rows as lines of JSON, and back: the same lines from SQLite and from PostgreSQL.

JSON columns are written as the text that is stored, so that what has not the shape that its readers want is kept too.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import connection
from django.db.models import BinaryField, Field, JSONField, Model, TextField
from django.db.models.functions import Cast

from experiments.core.search_index import backend
from experiments.keeping.backup_format import BackupError, split
from experiments.models import SearchText

AT_ONCE = 1_000
"""Rows that are read or written together."""


def columns_of(model: type[Model]) -> list[str]:
    return [str(field.column) for field in model._meta.local_concrete_fields]


def read_rows(model: type[Model]) -> Iterator[list[Any]]:
    """Every row, by its key, as plain JSON; in the order of `columns_of`."""
    fields = model._meta.local_concrete_fields
    texts = {f"text_of_{each.attname}": Cast(each.attname, TextField()) for each in fields if _is_json(each)}
    names = [f"text_of_{each.attname}" if _is_json(each) else each.attname for each in fields]
    rows = model._base_manager.order_by("pk").annotate(**texts).values_list(*names)
    for row in rows.iterator(chunk_size=AT_ONCE):
        yield [_encode(value) for value in row]


def write_rows(model: type[Model], rows: Iterable[Any]) -> int:
    """Insert rows in the transaction under way, keys and all; they are found by search. Returns how many.

    Raises BackupError for a row that is none of this table. What refers to what is checked by the database, at the end.
    """
    fields, count = model._meta.local_concrete_fields, 0
    statement = _insertion_of(model, fields)
    for some in split(rows, AT_ONCE):
        try:
            values = [_decode_row(fields, row) for row in some]
        except (ValueError, TypeError, ValidationError) as error:
            raise BackupError(f"A row of {model._meta.db_table} is none: {error}.") from None
        with connection.cursor() as cursor:
            cursor.executemany(statement, values)
        if model is SearchText:
            places = [columns_of(model).index(name) for name in ("id", "normalized")]
            backend.here().index([(row[places[0]], row[places[1]]) for row in some])
        count += len(some)
    return count


def _insertion_of(model: type[Model], fields: Sequence[Field[Any, Any]]) -> str:
    quoted = connection.ops.quote_name
    as_json = "%s::jsonb" if connection.vendor == "postgresql" else "%s"
    columns = ", ".join(quoted(str(field.column)) for field in fields)
    values = ", ".join(as_json if _is_json(field) else "%s" for field in fields)
    return f"INSERT INTO {quoted(model._meta.db_table)} ({columns}) VALUES ({values})"  # noqa: S608 - names of ours


def _is_json(field: Field[Any, Any]) -> bool:
    return isinstance(field, JSONField)


def _encode(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return base64.b64encode(value).decode() if isinstance(value, bytes | memoryview) else value


def _decode_row(fields: Sequence[Field[Any, Any]], row: Any) -> list[Any]:
    """The values as the database takes them. Raises ValueError, TypeError or ValidationError for what it does not."""
    if not isinstance(row, list):
        raise TypeError("it is no list")
    return [_decode(field, value) for field, value in zip(fields, row, strict=True)]


def _decode(field: Field[Any, Any], value: Any) -> Any:
    if value is None:
        return None
    if _is_json(field):
        json.loads(value)  # whether it is JSON at all
        return value
    if isinstance(field, BinaryField):
        value = base64.b64decode(value, validate=True)
        return field.get_db_prep_save(value, connection)
    return field.get_db_prep_save(field.to_python(value), connection)
