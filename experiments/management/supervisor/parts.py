"""The processes of one installation on one machine, and how to tell that they answer."""

from __future__ import annotations

import sys
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from celery import current_app
from kombu.exceptions import OperationalError
from redis import RedisError

from experiments.management.supervisor.processes import Child


def web(port: int) -> Child:
    """Pages, API and WebSockets, by the ASGI server."""
    options = ["--host", "127.0.0.1", "--port", str(port), "--lifespan", "off", "--timeout-graceful-shutdown", "3"]
    quiet = ["--log-level", "warning", "--no-access-log", "--ws-max-size", "4096"]
    plain = ["--no-proxy-headers"]  # experiments/core/client_ip.py reads them, and knows which to believe
    return python("web", "uvicorn", "maia_web.asgi:application", *options, *quiet, *plain, opens=True)


def worker(threads: int) -> Child:
    """The worker: one process, since it holds the models; it alone is given the keys of providers.

    Sweeping waits for a thread, as what it finds would.
    """
    options = ["--concurrency", str(threads), "--queues", "rounds,long,recovery"]
    alone = ["--without-gossip", "--without-mingle"]  # there are no other workers to meet at the start
    return python("worker", "celery", "--quiet", "--app", "maia_web", "worker", *options, *alone, trusted=True)


def make_scheduler(state: Path) -> Child:
    """The clock that has lost runs looked for."""
    schedule = ["--schedule", str(state / "beat-schedule")]
    return python("beat", "celery", "--quiet", "--app", "maia_web", "beat", *schedule, "--pidfile", "")


def python(name: str, *words: str, trusted: bool = False, opens: bool = False) -> Child:
    return Child(name, [sys.executable, "-m", *words], trusted=trusted, opens=opens)


def web_answers(port: int) -> bool:
    """Whether the site gives an answer that is no failure."""
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status < 500
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def worker_answers() -> bool:
    """Whether a worker answers over Redis."""
    try:
        return bool(current_app.control.ping(timeout=0.5))
    except (OperationalError, RedisError, OSError):
        return False
