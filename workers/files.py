"""Write files shared by threads and processes: whole or not at all, and by one of them at a time."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_PAUSE = 0.05
"""Seconds between two attempts to take a lock that another thread or process holds."""


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that replaces `path` when it is complete: readers see the old one or the new one.

    Makes its folder. What is left of a killed process ends in ".part". Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # By process and thread, so that two writers do not share a part
    part = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    finally:
        # Gone already after success
        part.unlink(missing_ok=True)


@contextmanager
def hold_lock(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a lock file. `waiting` is called repeatedly until it is ours; its exception ends the wait.

    Makes its folder. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        while True:
            try:
                # The lock belongs to the open file: threads exclude one another too, a killed process leaves none
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                # Not a blocking wait: the caller may be cancelled
                waiting()
                time.sleep(_PAUSE)
        yield
