"""Pages of a tab by number, with the words and links that lead from one to the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from experiments.display.window import number


@dataclass(frozen=True)
class Page:
    """Page `number` of so many things, `size` to a page; the last one stands in for those past the end."""

    number: int
    size: int
    total: int
    kept: Mapping[str, str]
    """What else the address says."""

    @classmethod
    def of(cls, params: Mapping[str, str], total: int, size: int, *keep: str) -> Page:
        last = max(1, -(-total // size))
        asked = number(params, "page") or 1
        return cls(min(max(1, asked), last), size, total, {name: params[name] for name in keep if params.get(name)})

    @property
    def start(self) -> int:
        return (self.number - 1) * self.size

    @property
    def end(self) -> int:
        return min(self.start + self.size, self.total)

    @property
    def first(self) -> int:
        return self.start + 1

    @property
    def last(self) -> int:
        return max(1, -(-self.total // self.size))

    @property
    def before(self) -> str:
        return self.url(self.number - 1) if self.number > 1 else ""

    @property
    def after(self) -> str:
        return self.url(self.number + 1) if self.number < self.last else ""

    def url(self, number: int) -> str:
        return f"?{urlencode({**self.kept, 'page': number})}"
