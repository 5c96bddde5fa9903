"""A reverse proxy on loopback that shows a site below a path, and either passes the path on or removes it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from socketserver import BaseRequestHandler, ThreadingTCPServer

NOT_HERE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@dataclass
class Proxy:
    """Where it listens, and the paths it was asked for that belong to another site of the host."""

    url: str
    strays: list[str] = field(default_factory=list)


@contextmanager
def behind_path(port: int, prefix: str, *, removes: bool) -> Iterator[Proxy]:
    """A proxy in front of what listens at `port`, for the length of a block."""

    class Handler(BaseRequestHandler):
        """One request; a connection carries no second one unless it is a WebSocket's."""

        def handle(self) -> None:
            head, body = _read_head(self.request)
            first, *lines = head.split("\r\n")
            method, _, rest = first.partition(" ")
            path = rest.partition(" ")[0]
            if not head:  # browsers open connections that they may not use
                return
            if not path.startswith(f"{prefix}/"):
                proxy.strays.append(path)
                self.request.sendall(NOT_HERE)
                return
            if removes:
                rest = rest.removeprefix(prefix)
            is_socket = any(line.lower().startswith("upgrade:") for line in lines)
            kept = [line for line in lines if is_socket or not line.lower().startswith("connection:")]
            own = [] if is_socket else ["Connection: close"]
            request = "\r\n".join([f"{method} {rest}", *kept, *own, "", ""]).encode("latin-1")
            with socket.create_connection(("127.0.0.1", port), 20) as site:
                site.settimeout(None)
                site.sendall(request + body)
                threading.Thread(target=_pump, args=(self.request, site), daemon=True).start()
                _pump(site, self.request)

    class Server(ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        proxy = Proxy(f"http://127.0.0.1:{server.server_address[1]}{prefix}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield proxy
        server.shutdown()


def _read_head(client: socket.socket) -> tuple[str, bytes]:
    """The lines of a request, and what came behind them; "" if the client left before they were whole."""
    read = b""
    while b"\r\n\r\n" not in read:
        more = client.recv(65536)
        if not more:
            return "", b""
        read += more
    head, _, body = read.partition(b"\r\n\r\n")
    return head.decode("latin-1"), body


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Pass on what comes, until either side is gone."""
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
