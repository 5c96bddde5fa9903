"""One span of a trace as plain data, its ids, and limits of its contents. Independent of OpenTelemetry.

Ids are hashes of the run and the span's event: a span sent twice is the same span, and rounds played by different
workers share a trace.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from experiments.core.params import clean_text
from experiments.models import Run

MAX_NAME_CHARS = 200
MAX_TEXT_CHARS = 32_000
"""Maximum characters of a text of the conversation. Longer ones are cut."""
_MAX_SECONDS = 10 * 365 * 86_400.0

Value = str | bool | int | float


@dataclass(frozen=True)
class SpanMark:
    """Something that happened at one moment of a span; OpenTelemetry calls it an event."""

    name: str
    time: datetime
    attributes: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class SpanRow:
    """One span. `parent` is empty for the root."""

    name: str
    kind: Literal["internal", "client"]
    trace: bytes
    span: bytes
    parent: bytes
    start: datetime
    end: datetime
    seq: int
    """Number of the run's event that ends the span."""
    attributes: Mapping[str, Value]
    marks: tuple[SpanMark, ...] = ()
    error: str = ""
    """Kind of failure, or ""."""


def trace_id(run: Run) -> bytes:
    """Return 16 bytes, the same for all spans of a run."""
    # With the time of creation, because several installations may have a run 1.
    return _hash(f"{run.pk} {run.created.timestamp():.6f}".encode())[:16]


def span_id(trace: bytes, place: str) -> bytes:
    """Return 8 bytes for a place in the run: "run", or the number of an event with a suffix."""
    return _hash(trace + place.encode())[:8]


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def cut_name(text: str) -> str:
    """Return a name from a file or model on one line, cut to a maximum, valid as UTF-8."""
    # Cut first, since cleaning takes time for long texts.
    return " ".join(clean_text(text[: 2 * MAX_NAME_CHARS]).split())[:MAX_NAME_CHARS]


def cut_text(text: str) -> str:
    return clean_text(text[:MAX_TEXT_CHARS])


def make_delta(seconds: float) -> timedelta:
    """Return a duration; zero for anything that is not a valid one."""
    return timedelta(seconds=min(seconds, _MAX_SECONDS) if math.isfinite(seconds) and seconds > 0 else 0)
