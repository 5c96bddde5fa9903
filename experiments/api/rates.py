"""How many requests a minute are answered to one token, or one person's browser. Without Redis: all."""

from __future__ import annotations

import time
from dataclasses import dataclass

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja.throttling import BaseThrottle
from redis import RedisError

from experiments.api.entry import identify
from experiments.core import notify

LIMIT, WINDOW = 600, 60
"""Requests, and the seconds in which they are counted."""


@dataclass(frozen=True)
class Rate:
    """What is left until the window ends, in `reset` seconds. Below 0: too many."""

    limit: int
    left: int
    reset: int


class Rates(BaseThrottle):
    """Counts each request, and notes on it how it stands."""

    def allow_request(self, request: HttpRequest) -> bool:
        rate = count(identify(request))
        request.rate = rate  # type: ignore[attr-defined]
        return rate is None or rate.left >= 0

    def wait(self) -> None:
        """The problem's own header tells."""


def count(asker: str) -> Rate | None:
    """Count one more request; None if Redis is away."""
    now = time.time()
    key = f"maia:rate:{asker}:{int(now) // WINDOW}"
    try:
        with notify.redis().pipeline() as pipe:
            pipe.incr(key)
            pipe.expire(key, WINDOW)
            used = int(pipe.execute()[0])
    except RedisError:
        return None
    return Rate(LIMIT, LIMIT - used, WINDOW - int(now) % WINDOW)


def set_headers(request: HttpRequest, response: HttpResponseBase) -> None:
    """Say it in the headers that clients know."""
    rate: Rate | None = getattr(request, "rate", None)
    if rate:
        response["RateLimit-Limit"] = str(rate.limit)
        response["RateLimit-Remaining"] = str(max(0, rate.left))
        response["RateLimit-Reset"] = str(rate.reset)
