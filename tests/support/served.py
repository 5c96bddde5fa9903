"""The whole site in this process, WebSockets included, on the database of the test."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from maia_web.asgi import application
from maia_web.http_protocol import TimedHeaders

PATIENCE = 60.0
"""Seconds in which it has to have started."""


@contextmanager
def served(application: Any = application) -> Iterator[str]:
    """Its address, or that of another application, for the length of a block."""
    plain = {"port": 0, "log_level": "error", "lifespan": "off", "timeout_graceful_shutdown": 2}
    config = uvicorn.Config(application, http=TimedHeaders, **plain)  # type: ignore[arg-type]
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + PATIENCE
    while not server.started:
        assert time.monotonic() < end, "it did not start"
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(PATIENCE)
