"""A worker thread that repeats one step, such as heartbeats and status reports."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import TracebackType

from django.db import connection

log = logging.getLogger(__name__)


class PeriodicThread:
    """Calls `step` periodically during a `with` block, until it returns False.

    The step may raise anything. The exception is logged with its traceback, and again only if it changes.
    """

    def __init__(self, name: str, every: float, step: Callable[[], bool]) -> None:
        self._step = step
        self._every = every
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name=name, daemon=True)

    def __enter__(self) -> PeriodicThread:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        # Waited for, so that no step runs after the block.
        self._thread.join()

    def _go_on(self) -> None:
        trouble = ""
        try:
            while not self._over.wait(self._every):
                # The thread must outlive a failed step: without heartbeats, other workers would take over its work.
                try:
                    connection.close_if_unusable_or_obsolete()  # Django does this only for requests
                    if not self._step():
                        return
                    trouble = ""
                except Exception as error:
                    if trouble != repr(error):
                        log.exception("The thread %s continues after a failure.", self._thread.name)
                    trouble = repr(error)
        finally:
            connection.close()
