"""Filter the audit log for admins: by the address, as a page, and as a file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.db import connection
from django.db.models import Q, QuerySet

from experiments.api.fields import Day, RowNumber, Words
from experiments.core.params import parse_key
from experiments.core.spreadsheets import cell, csv_header, csv_line, json_line
from experiments.display.narrowing import (
    Choices,
    Filter,
    equal,
    equal_number,
    index_filters,
    narrow_down,
    since_day,
    until_day,
)
from experiments.models import AuditEntry, Run

PER_PAGE = 50
CHUNK = 500
"""Entries of a file that are in memory at once."""
COLUMNS = ("time", "name", "verb", "row_kind", "row_pk", "row_words", "details", "address", "agent", "token")


@dataclass(frozen=True)
class AuditQuery:
    """`values` holds the valid filters, `problems` a sentence for each of the others."""

    entries: QuerySet[AuditEntry]
    values: dict[str, str]
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def query(self) -> str:
        return urlencode(self.values)

    @classmethod
    def read(cls, params: Mapping[str, str]) -> AuditQuery:
        """Return the entries that the parameters of an address select, newest first."""
        found = narrow_down(AuditEntry.objects.all(), params, FILTERS)
        return cls(found.rows, found.values, found.problems)


def distinct(column: str) -> list[str]:
    """Return the values of an indexed column, by jumps along its index: there may be a million entries."""
    table, name = connection.ops.quote_name(AuditEntry._meta.db_table), connection.ops.quote_name(column)
    leaps = f"""WITH RECURSIVE leap(value) AS (
        SELECT MIN({name}) FROM {table}
        UNION ALL SELECT (SELECT MIN({name}) FROM {table} WHERE {name} > leap.value) FROM leap
        WHERE leap.value IS NOT NULL
    ) SELECT value FROM leap WHERE value <> ''"""  # noqa: S608 - names of our own
    with connection.cursor() as cursor:
        cursor.execute(leaps)
        return [row[0] for row in cursor.fetchall()]


def _list_distinct(column: str) -> Choices:
    return lambda *_: [(each, each) for each in distinct(column)]


SYSTEM = "-"
"""Value in the address for entries without a person."""
FILTERS = index_filters(
    Filter(
        "who",
        "Who",
        lambda text: Q(name="" if text == SYSTEM else text),
        Words,
        "a user name; - for the system or a visitor who is not signed in",
        in_fields=False,
    ),
    Filter("verb", "What", equal("verb"), Words, choices=_list_distinct("verb"), blank="Anything"),
    Filter("kind", "To a", equal("row_kind"), Words, "of the row", _list_distinct("row_kind"), blank="Any row"),
    Filter(
        "row",
        "Number",
        equal_number("row_pk", "number of a row"),
        RowNumber,
        "the number of the row",
        hint="Any",
        input="numeric",
    ),
    Filter("since", "Since", since_day("time"), Day, "a day, such as 2026-11-21", input="date"),
    Filter("until", "Until", until_day("time"), Day, "a day, such as 2026-11-21", input="date"),
)
"""By name in the address, for the page, the API and files."""


# --- a page ---


@dataclass(frozen=True)
class AuditPage:
    """Entries, keys of their runs that still exist, and, if there are older entries, the query string that leads to
    them."""

    entries: list[AuditEntry]
    runs: set[int]
    older: str
    is_newest: bool


def page(asked: AuditQuery, before: str) -> AuditPage:
    """Return the entries older than the one with the key `before`; the newest for none, or an unknown key."""
    # A cursor rather than a page number: deep pages cost as much as the first, and new entries move nothing
    mark = AuditEntry.objects.filter(pk=parse_key(before)).first()
    entries = _older_than(asked.entries, mark) if mark else asked.entries
    found = list(entries[: PER_PAGE + 1])
    older = urlencode({**asked.values, "before": found[PER_PAGE - 1].pk}) if len(found) > PER_PAGE else ""
    keys = [each.row_pk for each in found[:PER_PAGE] if each.row_kind == "run" and each.row_pk]
    runs = set(Run.objects.filter(pk__in=keys).order_by().values_list("pk", flat=True))
    return AuditPage(found[:PER_PAGE], runs, older, mark is None)


def _older_than(entries: QuerySet[AuditEntry], mark: AuditEntry) -> QuerySet[AuditEntry]:
    """Return older entries."""
    # The first condition follows from the second, but can use an index
    return entries.filter(time__lte=mark.time).filter(Q(time__lt=mark.time) | Q(pk__lt=mark.pk))


# --- a file ---


FORMATS = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}
"""File extension -> content type."""


async def stream_entries(asked: AuditQuery, form: str) -> AsyncIterator[bytes]:
    """Stream the filtered entries as a file, newest first, in pieces."""
    yield csv_header(COLUMNS) if form == "csv" else b""
    entries = asked.entries
    # Each piece is a separate query: a slow reader holds no transaction open
    while found := [each async for each in entries[:CHUNK]]:
        rows = [{name: getattr(each, name) for name in COLUMNS} for each in found]
        yield b"".join(csv_line(map(cell, row.values())) if form == "csv" else json_line(row) for row in rows)
        entries = _older_than(asked.entries, found[-1])
