"""Split anything into numbered pages. Small counts are exact; large ones may be some minutes old."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2s
from typing import Any
from urllib.parse import urlencode

from django.core.cache import cache
from django.db.models import QuerySet

COUNTED = 20_000
"""Up to this many rows are counted afresh for every page."""
KEPT_SECONDS = 600
"""Maximum age of a larger count, in seconds."""
HIGHEST = 9_999_999
NUMBER = re.compile("[1-9][0-9]{0,6}", re.ASCII)


@dataclass(frozen=True)
class Count:
    rows: int
    exact: bool = True


def count(rows: QuerySet[Any]) -> Count:
    """Return the number of rows; for many rows, a count of at most some minutes ago."""
    bare = rows.order_by()
    # The count stops just above the limit, so a large table costs little.
    found = bare[: COUNTED + 1].count()
    if found <= COUNTED:
        return Count(found)
    # Counting many rows takes long, so the number is stored for a while.
    key = f"count:{blake2s(str(bare.query).encode(), digest_size=16).hexdigest()}"
    if (known := cache.get(key)) is None:
        cache.set(key, known := bare.count(), KEPT_SECONDS)
    return Count(known, exact=False)


@dataclass(frozen=True)
class Page:
    """One page of several; `params` are the other parameters of the address."""

    number: int
    size: int
    count: Count
    params: Mapping[str, str]

    @classmethod
    def of(cls, params: Mapping[str, str], rows: int, size: int, *keep: str) -> Page:
        """Return the page that the address names, or the last one if it is past the end. `keep` names the other
        parameters that stay in the links."""
        last = max(1, -(-rows // size))
        asked = number_of(params.get("page", "")) or 1
        return cls(min(asked, last), size, Count(rows), {name: params[name] for name in keep if params.get(name)})

    @property
    def start(self) -> int:
        return (self.number - 1) * self.size

    @property
    def end(self) -> int:
        return self.start + self.size

    @property
    def first(self) -> int:
        return self.start + 1

    @property
    def final(self) -> int:
        """Return the number of the page's last row."""
        return min(self.end, self.count.rows) if self.count.exact else self.end

    @property
    def last(self) -> int:
        """Return the number of the last page."""
        return max(1, -(-self.count.rows // self.size))

    @property
    def is_past(self) -> bool:
        return self.number > self.last and self.count.exact

    @property
    def before(self) -> str:
        return self.url(min(self.number - 1, self.last)) if self.number > 1 else ""

    @property
    def after(self) -> str:
        return self.url(self.number + 1) if self.number < self.last else ""

    @property
    def to_first(self) -> str:
        return self.url(1)

    @property
    def to_last(self) -> str:
        return self.url(self.last)

    def url(self, number: int) -> str:
        return f"?{urlencode({**self.params, 'page': number})}"


def number_of(text: str) -> int:
    """Return the page number that an address names; 0 for an invalid one."""
    if not text:
        return 1
    return int(text) if NUMBER.fullmatch(text) else 0
