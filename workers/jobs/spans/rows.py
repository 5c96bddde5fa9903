"""One span of a trace as plain data, its ids, and the bounds of what it may hold. Knows nothing of OpenTelemetry.

Ids are hashes of the run and of the event that a span is about: a span that is sent twice is the same span, and rounds
that different workers play are of one trace. The time of the run's making is part of them, since two installations both
have a run 1.
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
"""Characters of a text of the conversation; what is longer is cut."""
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
    """The event of the run with which the span ended."""
    attributes: Mapping[str, Value]
    marks: tuple[SpanMark, ...] = ()
    error: str = ""
    """What kind of failure it ended in; empty if it did not fail."""


def trace_id(run: Run) -> bytes:
    """16 bytes, the same for all spans of a run."""
    return _hash(f"{run.pk} {run.created.timestamp():.6f}".encode())[:16]


def span_id(trace: bytes, place: str) -> bytes:
    """8 bytes for what stands at one place of the run: "run", or the number of an event and what belongs to it."""
    return _hash(trace + place.encode())[:8]


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def cut_name(text: str) -> str:
    """A name that may come from a file or a model: on one line, bounded, as UTF-8 takes it."""
    return " ".join(clean_text(text[: 2 * MAX_NAME_CHARS]).split())[:MAX_NAME_CHARS]


def cut_text(text: str) -> str:
    return clean_text(text[:MAX_TEXT_CHARS])


def make_delta(seconds: float) -> timedelta:
    """So many seconds; none for what is no length of time."""
    return timedelta(seconds=min(seconds, _MAX_SECONDS) if math.isfinite(seconds) and seconds > 0 else 0)
