"""Find passages that contain all terms: few are ranked, many come newest first. A common word never makes it read
or rank all.

The newest passages in the scope are compared one by one. If they fill a page, the word is common, and they are the
result. Otherwise the index is used, and its results are ranked unless they are too many.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import User
from django.core import signing
from django.db.models import QuerySet, Value
from django.db.models.functions import StrIndex

from experiments.core.search_index import backend
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.models import SearchText, TextKind
from experiments.search import permissions

WALKED = 5_000
"""Newest passages that are compared one by one."""
RANKED = 500
"""Maximum passages that are ranked."""
PER_PAGE = 30
ALL = 2**62
"""A key above all others."""
SALT = "experiments.search"
WEIGHTS = {
    TextKind.LABEL: 24,
    TextKind.TAG: 24,
    TextKind.FINAL: 22,
    TextKind.QUESTION: 20,
    TextKind.DESCRIPTION: 18,
    TextKind.REVIEW: 18,
    TextKind.COMMENT: 16,
    TextKind.HYPOTHESIS: 14,
    TextKind.NOTE: 14,
    TextKind.TITLE: 12,
    TextKind.REPLY: 8,
}
"""Weight of each kind of text in a rank; programs and their output add nothing."""


class WrongCursor(ValueError):
    """The cursor is invalid."""


@dataclass(frozen=True)
class SearchScope:
    """Where to search; an empty field means everywhere."""

    kind: str = ""
    model: str = ""
    layer: str = ""
    unit: int | None = None
    run: int | None = None

    def passages(self) -> QuerySet[SearchText]:
        given: dict[str, Any] = {name: value for name, value in self.__dict__.items() if value not in ("", None)}
        return visible_to(SearchText.objects.filter(**given))


@dataclass(frozen=True)
class Found:
    """One page. `cursor` leads to the next, "" after the last."""

    keys: Sequence[int]
    ranked: bool = False
    total: int | None = None
    """The total, if known."""
    cursor: str = ""
    kinds: Mapping[str, int] | None = None
    """The number of each kind, if all are known."""
    gave_up: bool = False
    """True if the search stopped before the page was full; the cursor continues from there."""


def find(
    terms: Sequence[str], scope: SearchScope, cursor: str = "", limit: int = PER_PAGE, *, viewer: User | None = None
) -> Found:
    """Return a page of passages that contain all terms and that this person may see; without a person, those that
    no rule hides.

    Raises WrongCursor.
    """
    page = search(terms, scope, cursor, limit, viewer)
    permissions.record_disclosure(viewer, page.keys)
    return page


def search(terms: Sequence[str], scope: SearchScope, cursor: str, limit: int, viewer: User | None) -> Found:
    top, last = _read_cursor(cursor)
    if cursor and last is None:  # further back in time
        keys, frontier, _ = find_newest(terms, scope, top, limit + 1, limit, viewer)
        return _by_time(keys, frontier, limit)
    # One more than can be ranked, to notice that there are too many
    keys, frontier, whole = find_newest(terms, scope, top, RANKED + 1, limit, viewer)
    if whole and len(keys) <= RANKED:
        # The page of best matches after the one with the order `last`
        rows = SearchText.objects.filter(pk__in=keys).values_list("pk", "kind", "normalized")
        ordered = sorted([-score(terms, kind, normalized), -pk] for pk, kind, normalized in rows)
        rest = [each for each in ordered if last is None or each > last]
        page = rest[:limit]
        # Passages written later must not shift the pages of a ranked list
        first = max(keys, default=0) + 1 if top == ALL else top
        after = _write_cursor(first, page[-1]) if len(rest) > limit else ""
        kinds = Counter(kind for _, kind, _ in rows)
        return Found([-pk for _, pk in page], ranked=True, total=len(keys), cursor=after, kinds=kinds)
    return _by_time(keys, frontier, limit)


def count_kinds(
    found: Found, terms: Sequence[str], scope: SearchScope, viewer: User | None
) -> Mapping[str, int] | None:
    """Count the visible passages of each kind that contain all terms, even if the scope of `found` names one kind;
    None if they are too many to count."""
    if not scope.kind:
        return found.kinds
    keys, _, whole = find_newest(terms, replace(scope, kind=""), ALL, RANKED + 1, RANKED, viewer)
    # A partial count would be wrong
    if not whole or len(keys) > RANKED:
        return None
    return Counter(SearchText.objects.filter(pk__in=keys).order_by().values_list("kind", flat=True))


def find_newest(
    terms: Sequence[str], scope: SearchScope, before: int, limit: int, enough: int, viewer: User | None = None
) -> tuple[list[int], int | None, bool]:
    """Return the keys of the newest matches below `before` that this person may see: at most `limit`, and at least
    `enough` if there are so many.

    Also return the key at which the index gave up, if it did, and whether fewer than `limit` are all there are.
    """
    passages = scope.passages().filter(pk__lt=before).order_by("-pk")
    if viewer and (scope.model or scope.layer or scope.unit is not None):
        passages = passages.exclude(SystemNameMasker(viewer).are_hidden())
    matching = _compare_terms(passages, terms).filter(permissions.filter_visible(viewer))
    # Oldest of the newest passages that are compared one by one; None if there are fewer passages
    floor = next(iter(passages.values_list("pk", flat=True)[WALKED - 1 : WALKED]), None)
    keys = list(matching.filter(pk__gte=floor or 0).values_list("pk", flat=True)[:limit])
    if floor is None or len(keys) > enough:
        return keys, None, floor is None
    keys, frontier = backend.get_backend().find_newest(matching, terms, before, limit)
    return keys, frontier, frontier is None


def images(terms: Sequence[str]) -> QuerySet[SearchText, int | None]:
    """Return the keys of all observations with these words in titles and prompts, as a subquery for
    `filter(pk__in=…)`."""
    matching = _compare_terms(SearchScope(kind=TextKind.TITLE).passages(), terms)
    return backend.get_backend().filter_matches(matching, terms).order_by().values_list("anchor", flat=True)


def _compare_terms(passages: QuerySet[SearchText], terms: Sequence[str]) -> QuerySet[SearchText]:
    """Return the passages with all terms, compared one by one; every character is literal."""
    for term in terms:
        passages = passages.alias(place=StrIndex("normalized", Value(term))).filter(place__gt=0)
    return passages


def _by_time(keys: Sequence[int], frontier: int | None, limit: int) -> Found:
    if len(keys) > limit:
        return Found(keys[:limit], cursor=_write_cursor(keys[limit - 1]))
    return Found(keys, cursor=_write_cursor(frontier) if frontier else "", gave_up=frontier is not None)


def score(terms: Sequence[str], kind: str, normalized: str) -> int:
    """Return a score, which is higher for whole words, for short texts, and for conclusions of people and agents."""
    whole = 0
    for term in terms:
        if re.search(rf"\b{re.escape(term)}\b", normalized):
            whole += 40
        elif re.search(rf"\b{re.escape(term)}", normalized):
            whole += 15
    share = sum(map(len, terms)) / max(len(normalized), 1)
    return WEIGHTS.get(TextKind(kind), 0) + round(whole / len(terms)) + round(30 * min(share, 1))


def _write_cursor(top: int, last: Sequence[int] | None = None) -> str:
    return signing.dumps([top, last], salt=SALT)


def _read_cursor(cursor: str) -> tuple[int, list[int] | None]:
    """Return the key below which to look, and in a ranked list the last one shown."""
    if not cursor:
        return ALL, None
    try:
        top, last = signing.loads(cursor, salt=SALT)
    except signing.BadSignature:
        raise WrongCursor("This address leads to no page of results: it was changed on the way.") from None
    return top, last
