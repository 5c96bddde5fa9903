"""Format log lines, plain or as one JSON object each. Both name the run, job or request, and leave out tokens in
addresses."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

from experiments.core.security import SECRET
from workers.record.terminal import escape_controls

_about: ContextVar[dict[str, str]] = ContextVar("about", default={})  # noqa: B039 - never changed, only replaced


@contextmanager
def logging_about(**names: object) -> Iterator[None]:
    """Add these values to each log line within the block, as `run=7 round=2`."""
    token = _about.set(_about.get() | {name: str(value) for name, value in names.items()})
    try:
        yield
    finally:
        _about.reset(token)


def log_of_request(name: str) -> None:
    """Name this request in all further log lines of this context; "" for none."""
    _about.set({"request": name} if name else {})


class Plain(logging.Formatter):
    """Format a line as `2026-11-23 10:00:00,000 WARNING workers.jobs.rounds: Words [run=7 round=2]`."""

    def format(self, record: logging.LogRecord) -> str:
        about = " ".join(f"{name}={value}" for name, value in _about.get().items())
        text = super().format(record)
        # Behind the first line: a traceback follows on the others.
        first, line, rest = text.partition("\n")
        return _clean(f"{first} [{about}]{line}{rest}" if about else text)


class Json(logging.Formatter):
    """Format a line as a JSON object: time (UTC), level, logger, message, context, and a traceback as `error`."""

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_about.get(),
        }
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return _clean(json.dumps(said, ensure_ascii=False, default=str))


def _clean(line: str) -> str:
    """Remove tokens, and characters that would control the terminal."""
    return SECRET.sub(r"/\1/…", escape_controls(line))
