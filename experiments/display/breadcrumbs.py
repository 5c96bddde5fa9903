"""Breadcrumbs: the way to a page, read off its address. Each is a page of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import Resolver404, ResolverMatch, resolve
from django.utils.encoding import escape_uri_path

WORDS = {
    "overview": "Overview",
    "query": "New query",
    "root": "API",
    "run": "Run {pk}",
    "run-shares": "Shares",
    "run-fork": "Fork",
    "run-reply": "Your round",
    "run-hand-over": "Hand over",
    "run-limits": "Limits",
    "run-note": "Note",
    "settings-datasets": "Datasets",
    "run-review": "Put up for review",
    "experiment": "Experiment {n}",
    "image-page": "Image {key:.8}",
    "unit": "Unit {number}",
}
"""Name of an address -> what its crumb says; others say the last part of the address."""
DEEPEST = 12
"""Parts of an address beyond which nothing is looked up."""


@dataclass(frozen=True)
class Crumb:
    words: str
    url: str


def crumbs(path: str) -> list[Crumb]:
    """The pages on the way to `path`, itself included. The start page alone needs no way."""
    found = [Crumb(words(match, way), escape_uri_path(way)) for way in ways(path) if (match := page_at(way))]
    return found if len(found) > 1 else []


def ways(path: str) -> Iterator[str]:
    """Every beginning of a path that may be a page's address."""
    parts = path.strip("/").split("/")[:DEEPEST]
    yield "/"
    yield from (f"/{'/'.join(parts[:end])}/" for end in range(1, len(parts) + (path.endswith("/") and path != "/")))
    if not path.endswith("/"):
        yield path


def page_at(path: str) -> ResolverMatch | None:
    try:
        return resolve(path)
    except Resolver404:
        return None


def words(match: ResolverMatch, path: str) -> str:
    """What a crumb says."""
    if template := WORDS.get(match.url_name or ""):
        try:
            return template.format(**match.kwargs)
        except (KeyError, ValueError):  # the page calls its parts otherwise
            pass
    last = path.rstrip("/").rpartition("/")[2]
    return last if match.kwargs else last.replace("-", " ").capitalize()
