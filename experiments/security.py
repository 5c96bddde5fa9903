"""The Content-Security-Policy: everything comes from us, nothing is inline. Logs that tell no secret of an address."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)


class ContentSecurityPolicy:
    """Middleware that sets the policy on every answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        return response


SECRET = re.compile(r"/(shared|enter|join)/[^/\s?\"']+")
"""Addresses that open something for whoever has them."""


class Discreet(logging.Formatter):
    """Leaves out the tokens that stand in addresses, of a message and of a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        return SECRET.sub(r"/\1/…", super().format(record))
