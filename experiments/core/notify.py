"""The bells, and the words of a reply under way: everything that passes through Redis on its way to viewers.

Nothing here is kept: Redis may be empty or dead at any moment. Then viewers catch up from the database, a little later.
Called by `transcript` and the workers' run log to send, by the consumer to read.
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
"""How long a draft outlives the worker that wrote it."""

_sender = Sender()
muted = threading.Event()
"""Set in a process that works without Redis: nothing is sent, and viewers catch up from the database."""


def group(run_id: int) -> str:
    """The channel group of a run's viewers."""
    return f"run.{run_id}"


def publish_event(run_id: int, seq: int) -> None:
    """Tell viewers that the run has a new event."""
    send(group(run_id), {"type": "run.event", "run": run_id, "seq": seq, "bell": secrets.token_hex(6)})


def topic_group(topic: str) -> str:
    """The channel group of those who hear a topic."""
    return f"topic.{topic}"


def publish_topic(topic: str) -> None:
    """Ring the bell of a topic, such as `comments.run.7`, once the transaction is committed. Never carries data.

    `access.TOPICS` says which there are and who may hear them.
    """
    transaction.on_commit(partial(send, topic_group(topic), {"type": "topic.bell", "topic": topic}))


def draft(run_id: int, text: str, offset: int) -> None:
    """Show the words of a reply under way: the whole draft is kept, viewers are sent what follows `offset`.

    An empty text clears the draft.
    """
    keep(f"maia:draft:{run_id}", text)
    send(group(run_id), {"type": "run.draft", "offset": offset, "text": text[offset:]})


def progress(run_id: int, what: str, done: int, total: int) -> None:
    """Show what long work is doing; `what` empty clears it."""
    report = {"what": what, "done": done, "total": total}
    keep(f"maia:progress:{run_id}", json.dumps(report) if what else "")
    send(group(run_id), {"type": "run.progress", **report})


def current(run_id: int) -> tuple[str, dict[str, Any] | None]:
    """The draft and the progress report as of now, for a viewer who comes late."""
    return all_current([run_id])[run_id]


def all_current(run_ids: Sequence[int]) -> dict[int, tuple[str, dict[str, Any] | None]]:
    """The same of many runs, asked for at once."""
    keys = [key for run_id in run_ids for key in (f"maia:draft:{run_id}", f"maia:progress:{run_id}")]
    try:
        found = redis().mget(keys) if keys else []
    except RedisError:
        found = [None] * len(keys)
    pairs = zip(run_ids, found[::2], found[1::2], strict=True)
    return {run_id: (str(text or ""), json.loads(latest) if latest else None) for run_id, text, latest in pairs}


def keep_report(topic: str, what: str, done: int, total: int, seconds: int = KEPT_SECONDS) -> None:
    """Keep a report that no run's viewers wait for, such as on exemplars being made, for some seconds; pages ask."""
    keep(f"maia:report:{topic}", json.dumps({"what": what, "done": done, "total": total}), seconds)


def read_report(topic: str) -> dict[str, Any] | None:
    """The last report on a topic, None if there is none or Redis is away."""
    try:
        found = redis().get(f"maia:report:{topic}")
    except RedisError:
        return None
    return json.loads(found) if found else None


def read_progress(job: Job | None) -> dict[str, Any] | None:
    """What a worker says of how far it is with long work; None while none has it."""
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
    """What `keep` kept, None if there is nothing or Redis is away."""
    try:
        found = redis().get(key)
    except RedisError:
        return None
    return str(found) if found else None


def send(to: str, message: dict[str, Any]) -> None:
    """Send to a channel group, if Redis is there; without waiting for it."""
    if not muted.is_set():
        _sender.send(to, message)


def end() -> None:
    """Send what waits, and give the connections of this process back."""
    _sender.end()
    redis().connection_pool.disconnect()
    redis.cache_clear()


@cache
def redis() -> Redis:
    """The connection pool of this process.

    Threads that ask for it first at the same moment get one each. A client that owned its pool would close it when it
    is forgotten, under the hands of whoever reads there.
    """
    bounds = {"socket_timeout": 2, "socket_connect_timeout": 1}
    return Redis(connection_pool=ConnectionPool.from_url(settings.REDIS_URL, decode_responses=True, **bounds))
