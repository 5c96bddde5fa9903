"""Write rows as lines of JSON and read them back: the same lines from SQLite and from PostgreSQL.

JSON columns are written as the stored text, so that values of an unexpected shape are kept too.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import connection
from django.db.models import BinaryField, Field, JSONField, Model, TextField
from django.db.models.functions import Cast

from experiments.core.params import MAX_INTEGER
from experiments.core.search_index import backend
from experiments.maintenance.backup_format import BackupError
from experiments.models import SearchText

AT_ONCE, BYTES_AT_ONCE = 1_000, 32 << 20
"""Rows that are read or written together, and the bytes of their lines from which no further row is added."""
PLAIN = 64 << 10
"""Maximum bytes of a row outside its texts: a short list of numbers. Nested brackets expand to forty times their
bytes."""
REASON_CHARS = 200
UNREADABLE = (ValueError, RecursionError)
"""Errors of a line that is no JSON, or nested too deep."""
_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)


def columns_of(model: type[Model]) -> list[str]:
    return [str(field.column) for field in model._meta.local_concrete_fields]


def read_rows(model: type[Model]) -> Iterator[list[Any]]:
    """Yield every row, by its key, as plain JSON; in the order of `columns_of`."""
    fields = model._meta.local_concrete_fields
    texts = {f"text_of_{each.attname}": Cast(each.attname, TextField()) for each in fields if _is_json(each)}
    names = [f"text_of_{each.attname}" if _is_json(each) else each.attname for each in fields]
    # The base manager: others leave rows out.
    rows = model._base_manager.order_by("pk").annotate(**texts).values_list(*names)
    for row in rows.iterator(chunk_size=AT_ONCE):
        yield [_encode(value) for value in row]


def write_rows(model: type[Model], lines: Iterable[bytes]) -> int:
    """Insert rows with their keys in the transaction under way, and index them for the search. Return their number.

    Raises BackupError for a row that does not fit the table. The database checks foreign keys at the end.
    """
    fields, count = model._meta.local_concrete_fields, 0
    statement = _insertion_of(model, fields)
    for some in _split_by_size(lines):
        values = []
        for number, line in enumerate(some, count + 1):
            try:
                values.append(_decode_row(fields, parse_line(line)))
            except (*UNREADABLE, TypeError, ArithmeticError, ValidationError) as error:
                reason = f"{type(error).__name__}: {str(error)[:REASON_CHARS]}"
                raise BackupError(f"Row {number:,} of {model._meta.db_table} is not right ({reason}).") from None
        with connection.cursor() as cursor:
            cursor.executemany(statement, values)
        if model is SearchText:
            # Rows inserted by SQL send no signal, so the search would not know them.
            places = [columns_of(model).index(name) for name in ("id", "normalized")]
            backend.get_backend().index([(row[places[0]], row[places[1]]) for row in values])
        count += len(some)
    return count


def parse_line(line: bytes) -> Any:
    """Parse a line. Raises one of UNREADABLE."""
    # Short lines are not searched, which are nearly all.
    if len(line) > PLAIN and len(_TEXTS.sub(b"", line)) > PLAIN:
        raise ValueError(f"it has more than {PLAIN:,} bytes outside its texts")
    return json.loads(line)


def _split_by_size(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield lists that are neither too long nor too large."""
    some: list[bytes] = []
    size = 0
    for line in lines:
        some.append(line)
        size += len(line)
        if len(some) == AT_ONCE or size >= BYTES_AT_ONCE:
            yield some
            some, size = [], 0
    if some:
        yield some


def _insertion_of(model: type[Model], fields: Sequence[Field[Any, Any]]) -> str:
    quoted = connection.ops.quote_name
    # PostgreSQL takes no text for jsonb without a cast
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
    """Return the values as the database takes them. Raises ValueError, TypeError or ValidationError for invalid
    ones."""
    if not isinstance(row, list):
        raise TypeError("it is no list")
    return [_decode(field, value) for field, value in zip(fields, row, strict=True)]


def _decode(field: Field[Any, Any], value: Any) -> Any:
    if value is None:
        return None
    if _is_json(field):
        json.loads(value)  # raises for text that is no JSON
        return value
    if isinstance(field, BinaryField):
        value = base64.b64decode(value, validate=True)
        return field.get_db_prep_save(value, connection)
    found = field.get_db_prep_save(field.to_python(value), connection)
    if isinstance(found, int) and not -MAX_INTEGER <= found <= MAX_INTEGER:
        raise ValueError(f"{field.column} is a larger number than a database keeps")
    return found
