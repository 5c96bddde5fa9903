"""Which runs wait for a worker."""

from __future__ import annotations

import json

from redis import Redis

from workers.jobs import claims


def list_queued() -> set[int]:
    """Runs that any worker may claim at this moment."""
    return set(claims.list_claimable().filter(run_queue__enabled=True).values_list("pk", flat=True))


def waiting_in(redis_url: str, queue: str) -> list[object]:
    with Redis.from_url(redis_url) as redis:
        return [json.loads(message)["headers"]["argsrepr"] for message in redis.lrange(queue, 0, -1)]
