"""Search on PostgreSQL: pg_trgm over the folded text; for terms that have no trigram, single characters and pairs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from django.db import DatabaseError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, QuerySet
from django.db.models.expressions import RawSQL

from experiments.core.search_index.normalize import grams
from experiments.models import Passage

EXTENSION = "CREATE EXTENSION IF NOT EXISTS pg_trgm"
INDEXES = (
    "CREATE INDEX passages_trigrams ON experiments_passage USING gin (folded gin_trgm_ops)",
    """CREATE FUNCTION experiments_grams(folded text) RETURNS bigint[]
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
    DECLARE
        letter text;
        code bigint;
        before bigint := 32;
        grams bigint[] := '{}';
    BEGIN
        FOREACH letter IN ARRAY string_to_array(folded, NULL) LOOP
            code := ascii(letter);
            IF code <> 32 THEN
                grams := grams || code;
                IF before <> 32 THEN
                    grams := grams || (before << 21 | code);
                END IF;
            END IF;
            before := code;
        END LOOP;
        RETURN grams;
    END $$""",
    "CREATE INDEX passages_grams ON experiments_passage USING gin (experiments_grams(folded))",
)
ASCII_TRIGRAM, TRIGRAM = re.compile("[a-z0-9]{3}"), re.compile(r"[^\W_]{3}")


def create(database: BaseDatabaseWrapper) -> None:
    """Make the extension and the indexes. Raises DatabaseError with a remedy where the role may not."""
    with database.cursor() as cursor:
        try:
            cursor.execute(EXTENSION)
        except DatabaseError as error:
            reason = str(error).splitlines()[0]
            raise DatabaseError(
                f"PostgreSQL refused its extension pg_trgm, which search needs: {reason}. "
                f"Have an administrator run `{EXTENSION};` in this database (Debian's postgresql package brings it; "
                "elsewhere it is in postgresql-contrib), then migrate again."
            ) from error
        for statement in INDEXES:
            cursor.execute(statement)


def drop(database: BaseDatabaseWrapper) -> None:
    """Undo `create`, but for the extension: others may use it."""
    with database.cursor() as cursor:
        cursor.execute("DROP INDEX passages_trigrams, passages_grams")
        cursor.execute("DROP FUNCTION experiments_grams")


def hints(texts: Sequence[str]) -> Sequence[str]:
    """None are needed."""
    return texts


def index(rows: Sequence[tuple[int, str]], *, worked_out: Sequence[str] | None = None) -> None:
    """Nothing to do: PostgreSQL keeps its indexes itself."""


def newest(passages: QuerySet[Passage], terms: Sequence[str], before: int, limit: int) -> tuple[list[int], int | None]:
    """See `backend.Backend`."""
    found = named(passages.filter(pk__lt=before), terms)
    # Not by the bare key: the planner would walk all passages in its order rather than ask the index.
    return list(found.order_by(-(F("pk") + 0)).values_list("pk", flat=True)[:limit]), None


def named(passages: QuerySet[Passage], terms: Sequence[str]) -> QuerySet[Passage]:
    """See `backend.Backend`."""
    whole = [term for term in terms if has_trigram(term)]
    for term in whole:
        passages = passages.filter(folded__contains=term)
    return passages if whole else passages.filter(pk__in=holding_grams(terms))


def holding_grams(terms: Sequence[str]) -> RawSQL:
    """Passages with all characters and pairs of the terms."""
    wanted = sorted({number(gram) for term in terms for gram in grams(term)})
    return RawSQL("SELECT id FROM experiments_passage WHERE experiments_grams(folded) @> %s::bigint[]", [wanted])


def number(gram: str) -> int:
    """A gram as the database's function has it: numbers are smaller and sooner compared than text."""
    return ord(gram) if len(gram) == 1 else ord(gram[0]) << 21 | ord(gram[1])


def has_trigram(term: str) -> bool:
    """Whether pg_trgm knows a part of it: three letters or digits in a row, of scripts that the locale has."""
    return bool((TRIGRAM if knows_all_scripts() else ASCII_TRIGRAM).search(term))


@cache
def knows_all_scripts() -> bool:
    """With the locale "C" PostgreSQL takes no letter but A to Z for one."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT cardinality(show_trgm('д')) > 0")
        return bool(cursor.fetchone()[0])
