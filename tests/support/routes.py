"""Every address of the site."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

Resolved = tuple[str, URLPattern]


def every(patterns: list[Any], before: str = "") -> Iterator[Resolved]:
    for each in patterns:
        route = before + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from every(each.url_patterns, route)
        else:
            yield route, each


ALL = list(every(get_resolver().url_patterns))
