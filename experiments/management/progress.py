"""How far long work is, on one line of a terminal that replaces itself; Ctrl+C ends it at a safe place."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management.base import CommandError

from workers.errors import Cancelled

EVERY = 0.1
"""Seconds between two changes of the line."""
STOPPED = 130
"""What the shell is told of Ctrl+C."""
WIDEST = 110
"""A line that is wider than the terminal would not replace itself."""


class ProgressLine:
    """A `Progress` for a terminal: what is done, how much of it. A pipe sees nothing of it."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.shown = 0.0
        self.open = False
        """Whether the cursor stands behind words of ours."""

    def __call__(self, what: str, done: int, total: int) -> None:
        if self.stop.is_set():
            raise Cancelled("Stopped by Ctrl+C.")
        now = time.monotonic()
        if sys.stderr.isatty() and (done == total or now - self.shown > EVERY):
            self.shown, self.open = now, done != total
            count = f": {done:,} of {total:,}"
            print(f"\r\033[K{what[:WIDEST]}{count}", end="" if self.open else "\n", file=sys.stderr, flush=True)

    @contextmanager
    def until_ctrl_c(self, kept: str) -> Iterator[None]:
        """Within the block Ctrl+C lets the work finish its step; then a CommandError says what is kept of it.

        What is printed after it begins on a line of its own.
        """
        before = signal.signal(signal.SIGINT, lambda *_: self.stop.set())
        try:
            yield
        except Cancelled:
            raise CommandError(f"Stopped. {kept}".strip(), returncode=STOPPED) from None
        finally:
            signal.signal(signal.SIGINT, before)
            if self.open:
                print(file=sys.stderr, flush=True)
                self.open = False
