"""Parse a search query: words and "quoted phrases", all of which must occur. Only quotes are special."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.core.search_index.normalize import normalize

MAX_QUERY_CHARS = 200
"""Maximum characters of a query; passages overlap by as many, so that no phrase is split."""
MAX_TERMS = 16
WILDCARDS = frozenset("%_*?\"' ")
PART = re.compile(r'"([^"]+)"|(\S+)')


@dataclass(frozen=True)
class Words:
    """A parsed query. `terms` are normalized, and none is part of another. `problem` says why there is no search,
    and the remedy."""

    terms: Sequence[str]
    problem: str = ""
    refused: bool = False
    """True if the problem is an error, rather than an empty query."""


def parse_words(typed: str) -> Words:
    """Return the terms of a query, or the problem with it."""
    if len(typed) > MAX_QUERY_CHARS:
        return Words(
            (), f"The query has {len(typed):,} characters, at most {MAX_QUERY_CHARS} are possible: shorten it.", True
        )
    if not typed.strip():
        return Words((), "Write a word, or a part of one.")
    if set(typed) <= WILDCARDS:
        return Words(
            (),
            f"“{typed.strip()}” alone finds nothing: wildcards are ordinary characters here, since a part of a word "
            "is found anyway. Write a part of a word.",
        )
    terms = {normalize(phrase or word) for phrase, word in PART.findall(typed)} - {""}
    if len(terms) > MAX_TERMS:
        return Words((), f"The query has {len(terms)} words, at most {MAX_TERMS} are possible: leave some out.", True)
    if not terms:
        return Words((), "These are accents alone. Write a word, or a part of one.")
    normalized = normalize(typed)
    # A term inside another adds nothing.
    apart = [term for term in terms if not any(term in other for other in terms - {term})]
    return Words(tuple(sorted(apart, key=lambda term: (normalized.find(term), term))))
