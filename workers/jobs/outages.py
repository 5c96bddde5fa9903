"""Outages: the database, the disk or the store of images is away or full. A run waits for their end, and nothing is
counted against it; other errors are the machinery's, and end a run that meets them again and again."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from django.db import InterfaceError, OperationalError

from workers.errors import Outage

_DISK = {
    errno.ENOSPC: "There is no room left on the disk of a worker.",
    errno.EDQUOT: "A worker's share of its disk is used up.",
    errno.EROFS: "The disk of a worker can only be read.",
    errno.EIO: "The disk of a worker fails.",
    errno.ESTALE: "The disk of a worker is away.",
    errno.ENOTCONN: "The disk of a worker is away.",
}
_AGAIN = "What waits goes on by itself once that is over; the worker's output says more."


def explain_outage(error: BaseException) -> str:
    """What is away or full, for the people who wait; "" if the error, and what caused it, speak of nothing like it."""
    for each in _causes(error):
        if isinstance(each, Outage):
            return str(each)
        if isinstance(each, OperationalError | InterfaceError):
            return f"The database does not answer as it should. {_AGAIN}"
        if isinstance(each, OSError) and each.errno in _DISK:
            return f"{_DISK[each.errno]} {_AGAIN}"
    return ""


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
