"""The Python client as a user has it: its file, loaded on its own; and a server that answers as a test has written."""

from __future__ import annotations

import importlib.util
import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from tests import ROOT

CLIENT = ROOT / "static/client/maia_client.py"
NOTEBOOK = ROOT / "static/client/maia.ipynb"


def load_client() -> ModuleType:
    """The module, new for each caller, so that a test may set its bounds."""
    spec = importlib.util.spec_from_file_location("maia_client", CLIENT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answered(status: int, body: Any = None, **headers: str) -> bytes:
    """An answer as it goes over the wire; the connection ends after it."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Words", f"Content-Length: {len(data)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + data


@contextmanager
def playing(answers: Sequence[bytes]) -> Iterator[tuple[str, list[str]]]:
    """The address of a server that gives these answers in turn, one a connection, and the requests that came to it. An
    empty answer drops the connection; the last answer is given again and again."""
    requests: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    requests.append(_read_request(connection))
                    connection.sendall(answers[min(len(requests), len(answers)) - 1])

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", requests
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def _read_request(connection: socket.socket) -> str:
    data = b""
    while b"\r\n\r\n" not in data and (piece := connection.recv(65536)):
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(each[15:]) for each in head.split(b"\r\n") if each.lower().startswith(b"content-length:")), 0)
    while len(body) < length and (piece := connection.recv(65536)):
        body += piece
    return (head + b"\r\n\r\n" + body).decode()
