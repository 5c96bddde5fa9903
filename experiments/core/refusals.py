"""Answer requests that are refused before any page sees them: forms that may come from another site, and unknown
host names.

Behind a proxy the cause is usually a setting of the installation, so page and log name it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import REASON_BAD_ORIGIN, REASON_BAD_REFERER, REASON_NO_CSRF_COOKIE
from django.shortcuts import render
from django.template.loader import render_to_string

MAX_CHARS = 100
"""Maximum characters that page and log show of an origin or a host, which the client chooses."""
FORWARD_SCHEME = "have the proxy send `X-Forwarded-Proto: https`"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FormRefusal:
    """Why a form was refused. `remedies` are sentences for the administrator, empty if users can help themselves."""

    title: str
    cause: str
    advice: str
    remedies: tuple[str, ...] = ()


OUT_OF_DATE = FormRefusal(
    "The page was out of date",
    "This form was opened before you last signed in, so it was not accepted.",
    "Go back, load the page again, and send it once more.",
)
NO_COOKIE = FormRefusal(
    "The browser sent no cookie",
    "A form is accepted only with the cookie that came with its page. Your browser blocks cookies or has removed it.",
    "Allow cookies for this site, load the page again, and send it once more.",
)


def answer_refused_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form that Django's CSRF protection refused for `reason`, and log the cause."""
    refusal = find_refusal(request, reason)
    words = " ".join((refusal.cause, *refusal.remedies))
    log.warning("%s %s was refused (%s): %s", request.method, request.path, reason[: 2 * MAX_CHARS], words)
    return render(request, "403_csrf.html", {"refusal": refusal}, status=403)


def find_refusal(request: HttpRequest, reason: str) -> FormRefusal:
    """Return the cause behind one of Django's reasons. Reasons without a case of their own count as the token of an
    older page."""
    expected = f"{request.scheme}://{request.get_host()}"
    if (origin := request.headers.get("Origin", "")) and reason == REASON_BAD_ORIGIN % origin:
        return _refuse_origin(origin, expected)
    referer = _split(request.headers.get("Referer", ""))
    if referer and reason == REASON_BAD_REFERER % referer.geturl():
        return _refuse_origin(f"{referer.scheme}://{referer.netloc}", expected)
    if reason.startswith("Referer checking failed"):
        return _refuse_origin("null", expected)
    if reason != REASON_NO_CSRF_COOKIE:
        return OUT_OF_DATE
    remedies = []
    if settings.HTTPS and not request.is_secure():
        remedies.append(
            f"MAIA_HTTPS is on, so browsers send cookies over HTTPS alone, and this request did not come by it: "
            f"{FORWARD_SCHEME}, or set MAIA_HTTPS=no."
        )
    return FormRefusal(NO_COOKIE.title, NO_COOKIE.cause, NO_COOKIE.advice, tuple(remedies))


def _refuse_origin(origin: str, expected: str) -> FormRefusal:
    """Return the refusal of a form from `origin`, if the site knows itself only as `expected`."""
    shown = origin[:MAX_CHARS]
    cause = f"The form came from {shown}, and the site takes itself to be at {expected[:MAX_CHARS]}."
    if origin == "null":
        cause = "The browser did not say which site the form came from."
    return FormRefusal(
        "This form was not accepted",
        cause,
        "Sending it again does not help. If you opened the page at an address of this site, show this page to its "
        "administrator.",
        tuple(_find_remedies(origin, expected, shown)),
    )


def _find_remedies(origin: str, expected: str, shown: str) -> list[str]:
    """Return the settings that would make the site accept its own address, the likeliest first."""
    if origin == "null":
        return ["Have no proxy set `Referrer-Policy: no-referrer`: the site sets its own."]
    theirs, ours = _split(origin), _split(expected)
    found = []
    if theirs and ours and (theirs.scheme, ours.scheme) == ("https", "http"):
        setting = "MAIA_HTTPS is on:" if settings.HTTPS else "Set MAIA_HTTPS=yes, and"
        found.append(f"{setting} {FORWARD_SCHEME}.")
    if theirs and ours and theirs.netloc != ours.netloc:
        what = "the port" if theirs.hostname == ours.hostname else "the host name"
        found.append(f"The proxy may not pass {what} on in Host: in nginx, write `proxy_set_header Host $http_host`.")
    return [*found, f"Otherwise, if {shown} is an address of this site, add it to MAIA_ORIGINS."]


def _split(address: str) -> SplitResult | None:
    """Return the parts of an address; None if it has none."""
    try:
        return urlsplit(address) if address else None
    except ValueError:
        return None


def answer_bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a request that cannot be read. An unknown host name is logged with the setting that allows it."""
    host = ""
    if isinstance(exception, DisallowedHost):
        host = request.META.get("HTTP_HOST", "")[:MAX_CHARS]
        log.error(
            "A request to the host %r was refused. If the site is to be reached by it, add it to MAIA_HOSTS, which is "
            "%s; otherwise have the proxy pass on the name that people use.",
            host,
            ",".join(settings.ALLOWED_HOSTS),
        )
    return HttpResponse(render_to_string("400.html", {"host": host}), status=400)
