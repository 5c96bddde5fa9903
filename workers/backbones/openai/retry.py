"""Wait for a provider, in a way that a person who stops the run can interrupt."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from workers.protocols import Emit

PULSE = 0.25
"""Seconds after which `emit` is called without text, so that it can stop us."""


@dataclass(frozen=True)
class RetryPolicy:
    """Times in seconds."""

    first: float = 1.0
    """Pause before the second request; doubled for each later one."""
    most: float = 60.0
    """Maximum pause that we choose ourselves."""
    longest: float = 300.0
    """Maximum pause that a provider may ask for. If it wants more, the run is better retried later."""
    silence: float = 300.0
    """Maximum silence of a stream; reasoning models, and servers that load one, take minutes."""
    murmur: float = 10.0
    """Silence after which viewers are told of it."""
    afterwards: float = 5.0
    """Maximum wait for the usage once the reply is finished."""
    connect: float = 20.0

    def pause(self, failures: int, wanted: float | None) -> float:
        """Return how long to wait after this many failures; as long as the provider asks, if it does."""
        if wanted is not None:
            return wanted
        # Exponential, with jitter: rejected clients then come back one by one.
        # 2 ** 30 is far beyond any pause, and larger powers overflow.
        return min(self.most, self.first * 2 ** min(failures - 1, 30)) * random.uniform(0.5, 1.0)


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a response asks to wait: `retry-after-ms`, or `Retry-After` in seconds or as a date."""
    millis, value = _number(headers.get("retry-after-ms")), headers.get("retry-after")
    if millis is not None:
        return millis / 1000
    seconds = _number(value)
    if seconds is not None or not value:
        return seconds
    try:
        then = parsedate_to_datetime(value)
    except ValueError:
        return None
    # A date without a zone is in UTC.
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return max(0.0, (then - datetime.now(UTC)).total_seconds())


def wait(seconds: float, emit: Emit) -> None:
    """Sleep. Raises what `emit` raises, soon after it does."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        # In short naps, because `emit` raises once a person has stopped the run.
        emit("")
        time.sleep(min(left, PULSE))
    emit("")


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    # Infinite or negative values would stop the run or skip the pause.
    return value if math.isfinite(value) and value >= 0 else None
