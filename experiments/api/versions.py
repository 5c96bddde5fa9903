"""Version responses: an ETag on each, 304 if nothing changed, If-Match before an edit."""

from __future__ import annotations

import hashlib
from typing import TypeVar

from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.http import parse_etags
from ninja import Schema
from ninja.renderers import JSONRenderer

from experiments.api.fields import RowOut, find
from experiments.api.problems import Refusal

Row = TypeVar("Row", bound=Model)


def tag(content: bytes) -> str:
    """Return the ETag of a response."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def tag_of(request: HttpRequest, shown: Schema) -> str:
    """Return the ETag that a GET of this would have."""
    return tag(JSONRenderer().render(request, shown.model_dump(), response_status=200).encode())


def must_match(request: HttpRequest, shown: Schema) -> None:
    """Refuse an edit if its author has not seen the current version. Call it with the row locked."""
    sent = request.headers.get("If-Match", "")
    if not sent.strip():
        raise Refusal("if-match", "Read it first and send its ETag in If-Match, so that no other edit is lost.")
    tags = parse_etags(sent)
    if tags != ["*"] and tag_of(request, shown) not in tags:
        raise Refusal("changed", "It has changed since you read it. Read it again, then edit the new version.")


def lock_as_read(request: HttpRequest, rows: QuerySet[Row], pk: int, out: type[RowOut]) -> Row:
    """Lock a row and return it, if the client knows its current version. Raises Refusal."""
    # Locked, so that the row cannot change between the comparison and the edit.
    row = find(rows.select_for_update(), pk=pk)
    must_match(request, out.from_orm(row))
    return row
