"""The interface of a database's search index; the database connection determines the implementation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from django.db import connection
from django.db.models import QuerySet

from experiments.core.search_index import postgres, sqlite
from experiments.models import SearchText


class Backend(Protocol):
    """The index only proposes: each passage that it names is compared with the terms again."""

    def hints(self, texts: Sequence[str]) -> Sequence[str]:
        """Return what `index` needs besides normalized texts; computed before anything is locked."""
        ...

    def index(self, rows: Sequence[tuple[int, str]], *, worked_out: Sequence[str] | None = None) -> None:
        """Add passages (key, normalized text) to the index. `worked_out` are the texts' hints, if already computed."""
        ...

    def find_newest(
        self, passages: QuerySet[SearchText], terms: Sequence[str], before: int, limit: int
    ) -> tuple[list[int], int | None]:
        """Return the keys of the newest of these passages below `before`, at most `limit`, and None; `passages`
        compares the terms itself.

        If the index gave up after many candidates, the second value is the key down to which it looked.
        """
        ...

    def filter_matches(self, passages: QuerySet[SearchText], terms: Sequence[str]) -> QuerySet[SearchText]:
        """Return those of these passages that the index names for the terms, for a subquery."""
        ...


def get_backend() -> Backend:
    """Return the index of the connected database."""
    if connection.vendor == "sqlite":
        return sqlite
    if connection.vendor == "postgresql":
        return postgres
    raise NotImplementedError(
        f"Search works on SQLite and PostgreSQL, not on {connection.vendor}. Set MAIA_DATABASE_URL."
    )
