"""Limit requests per minute of a token, or of a user's browsers. Without Redis there is no limit."""

from __future__ import annotations

import time
from dataclasses import dataclass

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja.throttling import BaseThrottle
from redis import RedisError

from experiments.api.auth import identify
from experiments.core import notify

LIMIT, WINDOW = 600, 60
"""Maximum requests, and the seconds in which they are counted."""


@dataclass(frozen=True)
class Rate:
    """The requests left until the window ends, in `reset` seconds. Below 0: too many."""

    limit: int
    left: int
    reset: int


class Rates(BaseThrottle):
    """Count each request, and store the result on it."""

    def allow_request(self, request: HttpRequest) -> bool:
        rate = count(identify(request))
        request.rate = rate  # type: ignore[attr-defined]
        return rate is None or rate.left >= 0

    def wait(self) -> None:
        """Return nothing: the problem has its own header."""


def count(asker: str) -> Rate | None:
    """Count one more request; return None if Redis is away."""
    now = time.time()
    key = f"maia:rate:{asker}:{int(now) // WINDOW}"
    try:
        with notify.redis().pipeline() as pipe:
            pipe.incr(key)
            pipe.expire(key, WINDOW)
            used = int(pipe.execute()[0])
    # Without Redis, requests are not counted rather than refused.
    except RedisError:
        return None
    return Rate(LIMIT, LIMIT - used, WINDOW - int(now) % WINDOW)


def set_headers(request: HttpRequest, response: HttpResponseBase) -> None:
    """Set the usual rate limit headers."""
    rate: Rate | None = getattr(request, "rate", None)
    if rate:
        response["RateLimit-Limit"] = str(rate.limit)
        response["RateLimit-Remaining"] = str(max(0, rate.left))
        response["RateLimit-Reset"] = str(rate.reset)
