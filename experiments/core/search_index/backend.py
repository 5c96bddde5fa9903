"""What a database's index must offer to search; chosen by the database that the connection leads to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from django.db import connection
from django.db.models import QuerySet

from experiments.core.search_index import postgres, sqlite
from experiments.models import SearchText


class Backend(Protocol):
    """The index is a hint: every passage it names is compared with the terms again."""

    def hints(self, texts: Sequence[str]) -> Sequence[str]:
        """What `index` needs of normalized texts beside them: worked out before anything is locked."""
        ...

    def index(self, rows: Sequence[tuple[int, str]], *, worked_out: Sequence[str] | None = None) -> None:
        """Have passages (key, normalized text) found from now on; hints of the texts that are worked out are used."""
        ...

    def find_newest(
        self, passages: QuerySet[SearchText], terms: Sequence[str], before: int, limit: int
    ) -> tuple[list[int], int | None]:
        """Keys of the newest of these passages below `before`, at most `limit`; `passages` compares the terms itself.

        Also, if it gave up after many candidates, the key down to which it looked; else None.
        """
        ...

    def filter_matches(self, passages: QuerySet[SearchText], terms: Sequence[str]) -> QuerySet[SearchText]:
        """All of these passages that the index names for the terms, for a subquery."""
        ...


def here() -> Backend:
    """That of the database which the connection leads to."""
    if connection.vendor == "sqlite":
        return sqlite
    if connection.vendor == "postgresql":
        return postgres
    raise NotImplementedError(
        f"Search works on SQLite and PostgreSQL, not on {connection.vendor}. Set MAIA_DATABASE_URL."
    )
