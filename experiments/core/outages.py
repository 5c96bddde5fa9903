"""Recognise outages: the database, the disk or the image store is away or full, or the database is locked.

A run waits until an outage is over, and it does not count as a failure. Other errors are bugs, and end a run that
meets them repeatedly. A request is answered with 503 and may be sent again.
"""

from __future__ import annotations

import errno
import sqlite3
import sys
from collections.abc import Iterator

from django.db import Error, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.defaults import server_error

from workers.errors import Outage

RETRY_AFTER = 5
"""Seconds after which a request that met an outage may be sent again."""
_DISK = {
    errno.ENOSPC: "There is no room left on the disk of {}.",
    errno.EDQUOT: "The share of its disk that {} may use is used up.",
    errno.EROFS: "The disk of {} can only be read.",
    errno.EIO: "The disk of {} fails.",
    errno.ESTALE: "The disk of {} is away.",
    errno.ENOTCONN: "The disk of {} is away.",
}
_LOCKED = "Another process holds the database locked."
_SILENT = "The database does not answer as it should."
_SQLITE = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_FULL: "There is no room left on the disk of the database.",
    sqlite3.SQLITE_READONLY: _SILENT,
    sqlite3.SQLITE_IOERR: _SILENT,
    sqlite3.SQLITE_CANTOPEN: _SILENT,
    sqlite3.SQLITE_PROTOCOL: _SILENT,
}
"""Primary codes of SQLite that are an outage. Others are bugs of ours, such as a missing table."""
# A lock timeout, a deadlock, a full disk.
_POSTGRES = {"55P03": _LOCKED, "40P01": _LOCKED, "53100": "There is no room left on the disk of the database."}
_TOO_COMPLEX = "54"
"""Class of PostgreSQL's error codes for a statement that is too large."""
_WAITS = "Work resumes by itself once this is over. The worker's output has details."
_TRY_AGAIN = (
    "This is no fault of your request: try again in a moment. If it stays like this, ask the operator of MAIA Web to  "
    "look at the log of the web server, which names the cause."
)


def explain_outage(error: BaseException, place: str = "a worker", then: str = _WAITS) -> str:
    """Explain what is away, full or locked, for the people who wait; "" if neither the error nor its causes are an
    outage. `place` says where it was met, `then` what follows."""
    for each in _iterate_causes(error):
        if isinstance(each, Outage):
            return str(each)
        if isinstance(each, OperationalError | InterfaceError) and (words := _explain_database(each)):
            return f"{words} {then}"
        if isinstance(each, OSError) and each.errno in _DISK:
            return f"{_DISK[each.errno].format(place)} {then}"
    return ""


def explain_to_visitor(error: BaseException) -> str:
    """Explain an outage to the sender of a request."""
    return explain_outage(error, "the web server", _TRY_AGAIN)


def answer_failure(request: HttpRequest) -> HttpResponse:
    """Answer a page that failed, in its exception handler: 503 for an outage, else 500. Does not use the database."""
    error = sys.exc_info()[1]
    if not error or not (words := explain_to_visitor(error)):
        return server_error(request)
    html = render_to_string("503.html", {"words": words})
    return HttpResponse(html, status=503, headers={"Retry-After": str(RETRY_AFTER)})


def _explain_database(error: Error) -> str:
    """Explain the database error in a sentence; "" if a statement of ours is wrong."""
    if (code := getattr(error.__cause__, "sqlite_errorcode", None)) is not None:
        # The low byte is the primary code.
        return _SQLITE.get(code & 0xFF, "")
    state = getattr(error.__cause__, "sqlstate", None) or ""
    return "" if state.startswith(_TOO_COMPLEX) else _POSTGRES.get(state, _SILENT)


def _iterate_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
