"""Claim what one installation must have for itself: its state folder and its port."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.core.management.base import CommandError


@contextmanager
def state_folder(state: Path) -> Iterator[None]:
    """Hold the state folder, created if needed. Raises CommandError if another `up` holds it."""
    state.mkdir(parents=True, exist_ok=True)
    # Opened to append: a start that is refused must not empty the file of the one that runs.
    with (state / "up.lock").open("a+") as lock:
        try:
            # The kernel releases it when the process ends, however that happens.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise CommandError(
                f"The state folder {state} is in use: process {lock.read().strip() or 'unknown'} runs on it already. "
                "Stop that one, or take another folder: MAIA_STATE=/path/to/folder."
            ) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


def free_port(port: int) -> None:
    """Raise CommandError if this port of the loopback address is not free."""
    with socket.socket() as probe:
        # As the server does it: connections of an earlier server that linger do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen()
        except (OSError, OverflowError) as error:
            raise CommandError(
                f"Port {port} cannot be had ({getattr(error, 'strerror', None) or error}). "
                f"Choose another one: make run PORT={port + 1 if port < 65_535 else 8000}"
            ) from None
