"""A proxy on loopback between two parts of an installation: it is slow, goes silent, or breaks off as it is told."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

_PIECE = 65_536


class Line:
    """Passes bytes on to `target`, a port of loopback. `delay` is in seconds for each piece of at most 64 KiB; once
    more than `most` bytes came back on a connection, it breaks off."""

    most: int | None = None

    def __init__(self, target: int) -> None:
        self.target, self.delay = target, 0.0
        self._passing = threading.Event()
        self._passing.set()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def silence(self) -> None:
        """Take what is sent and pass nothing on."""
        self._passing.clear()

    def cut(self) -> None:
        """Break off every connection; new ones are welcome."""
        with self._lock:
            broken, self._open = self._open, set()
        for each in broken:
            _shut(each)

    def mend(self) -> None:
        """As at the beginning."""
        self.delay, self.most = 0.0, None
        self._passing.set()

    def close(self) -> None:
        self.mend()
        _shut(self._listener)
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target), timeout=5)
                far.settimeout(None)
            except OSError:
                near.close()
                continue
            with self._lock:
                self._open |= {near, far}
            for one, other, back in ((near, far, False), (far, near, True)):
                threading.Thread(target=self._pass_on, args=(one, other, back), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, back: bool) -> None:
        passed = 0
        with suppress(OSError):
            while piece := source.recv(_PIECE):
                self._passing.wait()
                time.sleep(self.delay)
                if back and self.most is not None and passed + len(piece) > self.most:
                    sink.sendall(piece[: self.most - passed])
                    break
                sink.sendall(piece)
                passed += len(piece)
        for each in (source, sink):
            with self._lock:
                self._open.discard(each)
            _shut(each)


def _shut(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
