"""Search on SQLite: FTS5 with its trigram tokenizer; for short terms, a second table of single characters and
pairs.

Both tables are contentless: they name passages and hold no text. A deleted passage leaves its key behind. That is
harmless: keys are never reused, and every candidate is looked up.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

from experiments.core.search_index.normalize import ngrams
from experiments.models import SearchText

TRIGRAMS, NGRAMS = "experiments_trigrams", "experiments_ngrams"
BATCH_SIZE, MAX_CANDIDATES = 2_000, 10_000
"""Candidates looked up at once, and in total for one page."""
NAMED = "SELECT rowid FROM {table} WHERE {table} MATCH %s"
NEWEST = NAMED + " AND rowid < %s ORDER BY rowid DESC LIMIT %s"
MAX_TRIGRAMS = 24
"""This many trigrams of a long term suffice to leave few candidates."""


def hints(texts: Sequence[str]) -> list[str]:
    """Return the characters and pairs of each text, in the form of the second table."""
    return [" ".join(map(token, sorted(ngrams(normalized)))) for normalized in texts]


def index(rows: Sequence[tuple[int, str]], *, worked_out: Sequence[str] | None = None) -> None:
    """Add passages to the index."""
    found = hints([normalized for _, normalized in rows]) if worked_out is None else worked_out
    keyed = [(key, hint) for (key, _), hint in zip(rows, found, strict=True)]
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO experiments_trigrams (rowid, normalized) VALUES (%s, %s)", rows)
        cursor.executemany("INSERT INTO experiments_ngrams (rowid, ngrams) VALUES (%s, %s)", keyed)


def find_newest(
    passages: QuerySet[SearchText], terms: Sequence[str], before: int, limit: int
) -> tuple[list[int], int | None]:
    """See `backend.Backend`."""
    found: list[int] = []
    # In batches: the index knows nothing of the filters, so candidates may fail them.
    for _ in range(MAX_CANDIDATES // BATCH_SIZE):
        keys = candidates(terms, before)
        rows = passages.filter(pk__in=keys).order_by("-pk").values_list("pk", flat=True)
        found += rows[: limit - len(found)]
        # The index is exhausted, or the page is full.
        if len(keys) < BATCH_SIZE or len(found) == limit:
            return found, None
        before = keys[-1]
    return found, before


def filter_matches(passages: QuerySet[SearchText], terms: Sequence[str]) -> QuerySet[SearchText]:
    """See `backend.Backend`."""
    table, match = _plan_match(terms)
    return passages.filter(pk__in=RawSQL(NAMED.format(table=table), [match]))  # noqa: S611 - a table of ours


def candidates(terms: Sequence[str], before: int) -> list[int]:
    """Return the keys of the newest passages that the index names."""
    table, match = _plan_match(terms)
    with connection.cursor() as cursor:
        cursor.execute(NEWEST.format(table=table), [match, before, BATCH_SIZE])
        return [key for (key,) in cursor.fetchall()]


def _plan_match(terms: Sequence[str]) -> tuple[str, str]:
    """Return the table and the query: all trigrams of the terms; if all are short, their characters and pairs."""
    long = [term for term in terms if len(term) >= 3]
    table, tokens = (TRIGRAMS, trigrams(long)) if long else (NGRAMS, [token(term) for term in terms])
    return table, " AND ".join('"{}"'.format(each.replace('"', '""')) for each in tokens)


def trigrams(terms: Sequence[str]) -> list[str]:
    found = [term[start : start + 3] for term in terms for start in range(len(term) - 2)]
    return list(dict.fromkeys(found))[:MAX_TRIGRAMS]


def token(gram: str) -> str:
    """Encode a gram in letters that every tokenizer keeps."""
    # Signs such as "+" would be dropped by the tokenizer.
    return gram.encode().hex()
