"""Security middleware: Content-Security-Policy (everything from our origin, nothing inline), no caching of private
pages, no NUL in input, no secrets of addresses in logs."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, QueryDict

from experiments.core.params import clean_text

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
UNSAID = "private, no-store"
"""Cache-Control of responses that do not set it themselves. Images and the API do."""
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


class ContentSecurityPolicy:
    """Middleware that sets the policy on every response, and keeps private pages out of caches."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        if response.status_code != 304:  # the browser's copy is unchanged
            response.headers.setdefault("Cache-Control", UNSAID)
        return response


class WithoutNul:
    """Middleware that replaces the character NUL, which PostgreSQL accepts in no text, by U+FFFD.

    In addresses, forms and cookies. The API refuses it itself, with the field's name.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.COOKIES = {name: clean_text(value) for name, value in request.COOKIES.items()}
        if not request.path_info.startswith("/api/"):
            request.GET = _strip_nul(request.GET)  # type: ignore[assignment]
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *_: object) -> None:
        """Run here, so that a form is read no earlier than the CSRF check would read it."""
        if request.content_type in FORMS and not request.path_info.startswith("/api/"):
            request.POST = _strip_nul(request.POST)  # type: ignore[assignment]


def _strip_nul(given: QueryDict) -> QueryDict:
    """Return the values without NUL."""
    lists = [(key, given.getlist(key)) for key in given]
    # Almost no request has one, so it keeps its own object.
    if not any("\x00" in text for key, values in lists for text in (key, *values)):
        return given
    found = QueryDict(mutable=True)
    for key, values in lists:
        found.setlist(clean_text(key), [clean_text(value) for value in values])
    # As Django's own: views rely on it.
    found._mutable = False
    return found


SECRET = re.compile(r"/(shared|enter|join)/[^/\s?\"']+")
"""Addresses that give access to their holder."""
