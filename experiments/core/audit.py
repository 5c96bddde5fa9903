"""The only writer of the audit: who did what to which row, from where. Called in the transaction of what it records,
so that one is never kept without the other.

A verb is a noun and a past participle in lower case: `run.paused`, `share.revoked`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from django.contrib.auth.models import User
from django.db import models
from django.http import HttpRequest

from experiments.core import client_ip
from experiments.models import ApiToken, AuditEntry
from experiments.models.audit import AGENT_CHARS, NAME_CHARS, WORDS_CHARS

Detail = str | int | float | bool | None
LONGEST = 1_000
"""Characters of one detail; longer ones are cut."""


def record(request: HttpRequest, verb: str, row: models.Model | None = None, **details: Detail) -> None:
    """What the person behind a request did. Of a row that is deleted, record it before it is gone."""
    record_from(request, request.user, verb, row, **details)


def record_from(
    request: HttpRequest | None, user: object, verb: str, row: models.Model | None = None, **details: Detail
) -> None:
    """The same of a person who is not signed in yet, or not any more."""
    entry = entry_of(user, verb, row, details)
    if request is not None:
        token = getattr(request, "auth", None)
        entry.address = client_ip.address(request)
        entry.agent = plain(request.headers.get("User-Agent", ""), AGENT_CHARS)
        entry.token = plain(f"{token.start}… {token.name}", WORDS_CHARS) if isinstance(token, ApiToken) else ""
    entry.save()


def record_by(user: User | None, verb: str, row: models.Model | None = None, **details: Detail) -> None:
    """What somebody did without a request: a command, a worker; None for the installation itself."""
    entry_of(user, verb, row, details).save()


def entry_of(user: object, verb: str, row: models.Model | None, details: Mapping[str, Detail]) -> AuditEntry:
    """An entry that is not saved yet, with everything in words as it is at this moment."""
    known = user if isinstance(user, User) else None
    return AuditEntry(
        user=known,
        name=plain(known.get_username(), NAME_CHARS) if known else "",
        verb=verb,
        row_kind=kind_of(row) if row is not None else "",
        row_pk=row.pk if row is not None and isinstance(row.pk, int) else None,
        row_words=plain(str(row), WORDS_CHARS) if row is not None else "",
        details={name: storable(value) for name, value in details.items()},
    )


def kind_of(noun: models.Model | type[models.Model]) -> str:
    """What the audit calls rows of a model, such as "run" and "saved view"."""
    return str(noun._meta.verbose_name)


def plain(text: str, longest: int) -> str:
    """Text as every database takes it: cut, without zero bytes and half characters."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")[:longest]


def storable(value: Detail) -> Detail:
    """A detail as every database's JSON takes it."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return plain(str(value), LONGEST) if isinstance(value, str) else value
