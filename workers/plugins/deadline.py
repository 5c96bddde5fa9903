"""Call functions with a time limit. A thread cannot be stopped: one that hangs stays behind, idle."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


def start_call(function: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """Call a function in a thread; the future holds its result or exception."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(function(*arguments))
        except BaseException as error:  # noqa: BLE001 - a plug-in may also call sys.exit; the caller is told
            future.set_exception(error)

    # A daemon, so that a call that hangs does not keep the process from ending.
    threading.Thread(target=run, name="plug-in", daemon=True).start()
    return future


def find_outcome(future: Future[Any], seconds: float) -> BaseException | None:
    """Return its exception, None if it ended well. Raises TimeoutError if it does not end within this many seconds."""
    return future.exception(seconds)
