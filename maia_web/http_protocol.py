"""HTTP/1.1 for uvicorn, protected against clients that are slow on purpose: see `TimedHeaders`.

Enabled by `--http maia_web.http_protocol:TimedHeaders`.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_TIMEOUT = 20.0
"""Timeout of a request's headers, in seconds, from the connection or the first byte of a further request on it."""


class TimedHeaders(H11Protocol):
    """Closes a connection whose headers do not arrive in time. Bodies, responses and WebSockets have no limit."""

    _timeout: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._time_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._time_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._cancel()

    def _time_headers(self) -> None:
        """Start the timer, keep it while headers come in pieces, or stop it once they are complete."""
        # h11 calls a client idle until all headers of its request have come.
        if self.conn.their_state is not h11.IDLE:
            self._cancel()
        elif self._timeout is None:
            self._timeout = self.loop.call_later(HEADER_TIMEOUT, self.timeout_keep_alive_handler)

    def _cancel(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None
