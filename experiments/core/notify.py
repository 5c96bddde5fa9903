"""Send bells and the text of unfinished replies to viewers through Redis.

Nothing here is permanent: Redis may be empty or dead at any time. Then viewers catch up from the database a little
later. `transcript` and the workers' run log send; the consumer reads.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

from django.conf import settings
from django.db import transaction
from redis import ConnectionPool, Redis, RedisError

from experiments.core.sender import Sender
from experiments.models import Job, JobStatus

log = logging.getLogger(__name__)

KEPT_SECONDS = 600
"""How long a draft outlives its worker, in seconds."""

_sender = Sender()
muted = threading.Event()
"""Set in a process that works without Redis: nothing is sent, and viewers catch up from the database."""


def group(run_id: int) -> str:
    """Return the channel group of a run's viewers."""
    return f"run.{run_id}"


def publish_event(run_id: int, seq: int) -> None:
    """Tell viewers that the run has a new event."""
    # The random number names this ring: readings that began before it was heard may lack the event.
    send(group(run_id), {"type": "run.event", "run": run_id, "seq": seq, "bell": secrets.token_hex(6)})


def topic_group(topic: str) -> str:
    """Return the channel group of a topic's listeners."""
    return f"topic.{topic}"


def publish_topic(topic: str) -> None:
    """Ring the bell of a topic, such as `comments.run.7`, once the transaction is committed. It never carries data.

    `access.TOPICS` lists the topics and who may listen.
    """
    transaction.on_commit(partial(send, topic_group(topic), {"type": "topic.bell", "topic": topic}))


def draft(run_id: int, text: str, offset: int) -> None:
    """Show the text of an unfinished reply. The whole draft is stored; viewers are sent the part after `offset`.

    An empty text clears the draft.
    """
    keep(f"maia:draft:{run_id}", text)
    send(group(run_id), {"type": "run.draft", "offset": offset, "text": text[offset:]})


def progress(run_id: int, what: str, done: int, total: int) -> None:
    """Show the progress of long work; an empty `what` clears it."""
    report = {"what": what, "done": done, "total": total}
    keep(f"maia:progress:{run_id}", json.dumps(report) if what else "")
    send(group(run_id), {"type": "run.progress", **report})


def current(run_id: int) -> tuple[str, dict[str, Any] | None]:
    """Return the current draft and progress report, for a viewer who joins late."""
    return all_current([run_id])[run_id]


def all_current(run_ids: Sequence[int]) -> dict[int, tuple[str, dict[str, Any] | None]]:
    """Return the same for many runs, in one request to Redis."""
    keys = [key for run_id in run_ids for key in (f"maia:draft:{run_id}", f"maia:progress:{run_id}")]
    try:
        found = redis().mget(keys) if keys else []
    except RedisError:
        # Without Redis: nothing is known, and pages show what the database has.
        found = [None] * len(keys)
    pairs = zip(run_ids, found[::2], found[1::2], strict=True)
    return {run_id: (str(text or ""), json.loads(latest) if latest else None) for run_id, text, latest in pairs}


def keep_report(topic: str, what: str, done: int, total: int, seconds: int = KEPT_SECONDS) -> None:
    """Store a progress report for some seconds that belongs to no run, such as on computing exemplars. Pages poll
    it."""
    keep(f"maia:report:{topic}", json.dumps({"what": what, "done": done, "total": total}), seconds)


def read_report(topic: str) -> dict[str, Any] | None:
    """Return the last report on a topic; None if there is none or Redis is away."""
    try:
        found = redis().get(f"maia:report:{topic}")
    except RedisError:
        return None
    return json.loads(found) if found else None


def read_progress(job: Job | None) -> dict[str, Any] | None:
    """Return a worker's progress report on a long job; None while no worker has it."""
    return read_report(job.topic) if job and job.status == JobStatus.RUNNING else None


def keep(key: str, text: str, seconds: int = KEPT_SECONDS) -> None:
    if muted.is_set():
        return
    try:
        if text:
            redis().set(key, text, ex=seconds)
        else:
            redis().delete(key)
    except RedisError as error:
        log.warning("Redis did not take %s: %s", key, error)


def read_kept(key: str) -> str | None:
    """Return what was stored under a key; None if there is nothing or Redis is away."""
    try:
        found = redis().get(key)
    except RedisError:
        return None
    return str(found) if found else None


def send(to: str, message: dict[str, Any]) -> None:
    """Send to a channel group if Redis is available, without waiting for it."""
    if not muted.is_set():
        _sender.send(to, message)


def end() -> None:
    """Send pending messages and close the connections of this process."""
    _sender.end()
    redis().connection_pool.disconnect()
    redis.cache_clear()


@cache
def redis() -> Redis:
    """Return this process's Redis client; threads that call it first at the same moment get one each."""
    # A client that owns its pool closes it when it is collected, while other threads still read from it.
    # Short waits: a page must not hang because Redis does.
    bounds = {"socket_timeout": 2, "socket_connect_timeout": 1}
    return Redis(connection_pool=ConnectionPool.from_url(settings.REDIS_URL, decode_responses=True, **bounds))
