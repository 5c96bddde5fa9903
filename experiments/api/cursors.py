"""Page lists by cursor: the position after the last item, signed, so that any page of a million costs the same.

A cursor belongs to its list and filters; one that was changed or belongs to another list is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from django.core import signing
from django.db.models import F, Model, Q, QuerySet
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from ninja import Field, Schema

from experiments.api.problems import Refusal

SALT = "experiments.api.cursor"
MAX_PAGE_SIZE, DEFAULT_PAGE_SIZE, MAX_CURSOR_CHARS = 200, 50, 600
Row = TypeVar("Row", bound=Model)
Item = TypeVar("Item")


class Paging(Schema):
    """Which part of a list to return."""

    cursor: str | None = Field(None, max_length=MAX_CURSOR_CHARS, description="`next` of the page before")
    limit: int = Field(DEFAULT_PAGE_SIZE, ge=1, le=MAX_PAGE_SIZE, description="items of a page")


class ListPage(Schema, Generic[Item]):
    """A part of a list."""

    items: list[Item]
    next: str | None = Field(description="the cursor of the next page; null on the last")


def page(
    request: HttpRequest, rows: QuerySet[Row], order: Sequence[str], asked: Paging, shape: Callable[[Row], Item]
) -> ListPage[Item]:
    """Return the rows after the cursor, in an order whose last field is unique. No field may be null."""
    by = list(order)
    # Ordered by expressions, so that the database does not walk a wrong index: keep it so
    if any(not isinstance(each, str) for each in rows.query.order_by):
        names = [name.lstrip("-") for name in by]
        rows = rows.alias(**{f"by_{name}": Coalesce(F(name), F(name)) for name in names})
        by = [("-" if name.startswith("-") else "") + f"by_{name.lstrip('-')}" for name in by]
    if asked.cursor:
        rows = rows.filter(_filter_after(by, open_cursor(request, asked.cursor, len(by))))
    found = list(rows.order_by(*by)[: asked.limit + 1])
    shown = found[: asked.limit]
    cursor = None
    if len(found) > asked.limit:
        place = [getattr(shown[-1], field.lstrip("-")) for field in order]
        cursor = seal(request, place)
    return ListPage(items=[shape(row) for row in shown], next=cursor)


def _filter_after(order: Sequence[str], values: Sequence[Any]) -> Q:
    """Return a filter for later rows."""
    field, value = order[0], values[0]
    name, past = field.lstrip("-"), "lt" if field.startswith("-") else "gt"
    if len(order) == 1:
        return Q(**{f"{name}__{past}": value})
    later = Q(**{f"{name}__{past}": value}) | _filter_after(order[1:], values[1:])
    # Follows from `later`, but can use an index on the first field
    return Q(**{f"{name}__{past}e": value}) & later


def seal(request: HttpRequest, values: Sequence[Any]) -> str:
    return signing.dumps([_list_of(request), *values], salt=SALT)


def open_cursor(request: HttpRequest, cursor: str, length: int) -> list[Any]:
    """Return the position of a cursor. Raises Refusal."""
    try:
        origin, *values = signing.loads(cursor, salt=SALT)
    except (signing.BadSignature, ValueError, TypeError):
        raise Refusal("cursor", "The cursor was not made here, or was changed. Begin again without one.") from None
    if origin != _list_of(request) or len(values) != length:
        raise Refusal("cursor", "The cursor belongs to another list or to other filters. Begin again without one.")
    return values


def _list_of(request: HttpRequest) -> str:
    """Return a short name of the list and its filters, without the page size, which may change between pages."""
    query = request.GET.copy()
    for name in ("cursor", "limit"):
        query.pop(name, None)
    address = repr([request.path, sorted(query.lists())])
    return hashlib.sha256(address.encode("utf-8", "replace")).hexdigest()[:16]
