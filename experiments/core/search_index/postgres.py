"""Search on PostgreSQL: pg_trgm on normalized text; for terms without a trigram, single characters and pairs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from django.db import connection
from django.db.models import F, QuerySet
from django.db.models.expressions import RawSQL

from experiments.core.search_index.normalize import ngrams
from experiments.models import SearchText

ASCII_TRIGRAM, TRIGRAM = re.compile("[a-z0-9]{3}"), re.compile(r"[^\W_]{3}")


def hints(texts: Sequence[str]) -> Sequence[str]:
    """Return the texts as they are: this index needs no hints."""
    return texts


def index(rows: Sequence[tuple[int, str]], *, worked_out: Sequence[str] | None = None) -> None:
    """Do nothing: PostgreSQL updates its indexes itself."""


def find_newest(
    passages: QuerySet[SearchText], terms: Sequence[str], before: int, limit: int
) -> tuple[list[int], int | None]:
    """See `backend.Backend`."""
    found = filter_matches(passages.filter(pk__lt=before), terms)
    # Not ordered by the bare key: the planner would walk all passages in that order instead of using the index.
    return list(found.order_by(-(F("pk") + 0)).values_list("pk", flat=True)[:limit]), None


def filter_matches(passages: QuerySet[SearchText], terms: Sequence[str]) -> QuerySet[SearchText]:
    """See `backend.Backend`."""
    # pg_trgm needs three letters or digits in a row, of scripts that the locale knows.
    known = TRIGRAM if _knows_all_scripts() else ASCII_TRIGRAM
    whole = [term for term in terms if known.search(term)]
    for term in whole:
        passages = passages.filter(normalized__contains=term)
    return passages if whole else passages.filter(pk__in=_filter_grams(terms))


def _filter_grams(terms: Sequence[str]) -> RawSQL:
    """Return a condition for passages that contain all characters and pairs of the terms."""
    # Grams as numbers, by the database's function: they are smaller and faster to compare than text.
    wanted = sorted(
        {
            (ord(gram) if len(gram) == 1 else ord(gram[0]) << 21 | ord(gram[1]))
            for term in terms
            for gram in ngrams(term)
        }
    )
    return RawSQL(
        "SELECT id FROM experiments_searchtext WHERE experiments_ngrams(normalized) @> %s::bigint[]", [wanted]
    )


@cache
def _knows_all_scripts() -> bool:
    """True if the locale knows letters beyond A to Z; "C" does not."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT cardinality(show_trgm('д')) > 0")
        return bool(cursor.fetchone()[0])
