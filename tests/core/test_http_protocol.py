"""Requests whose headers do not come are closed; slow bodies, slow answers and WebSockets are not."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.sync.client import connect

from experiments.management.supervisor import parts
from maia_web import http_protocol
from tests import ROOT
from tests.support.served import served

PATIENCE = 30.0
"""Seconds after which a socket that ought to have been closed fails the test."""
HALVES = {
    "nothing": b"",
    "half a line": b"GET / HT",
    "half the headers": b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
}


async def echo(scope: dict[str, Any], receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
    """Gives back what it is sent; what is asked of /slow comes after twice the time that headers have."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        said = await receive()
        await send({"type": "websocket.send", "text": said["text"]})
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"begun ", "more_body": True})
    if scope["path"] == "/slow":
        await asyncio.sleep(2 * http_protocol.HEADER_TIMEOUT)
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    monkeypatch.setattr(http_protocol, "HEADER_TIMEOUT", 0.3)
    with served(echo) as address:
        parts_of = urlsplit(address)
        assert parts_of.hostname
        assert parts_of.port
        yield parts_of.hostname, parts_of.port


def ask(place: tuple[str, int], path: str = "/", body: Any = b"hello") -> bytes:
    line = HTTPConnection(*place, timeout=PATIENCE)
    try:
        line.request("POST", path, body, encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
        return line.getresponse().read()
    finally:
        line.close()


def slowly(*pieces: bytes) -> Iterator[bytes]:
    for piece in pieces:
        time.sleep(0.75 * http_protocol.HEADER_TIMEOUT)
        yield piece


@pytest.mark.parametrize("half", HALVES)
def test_half_a_request_is_closed_while_others_are_answered(place: tuple[str, int], half: str) -> None:
    slow = [socket.create_connection(place, timeout=PATIENCE) for _ in range(50)]
    for each in slow:
        each.sendall(HALVES[half])
    assert ask(place) == b"begun hello"
    assert [each.recv(1) for each in slow] == [b""] * 50
    for each in slow:
        each.close()
    assert ask(place) == b"begun hello"


def test_headers_that_come_byte_by_byte_are_closed_too(place: tuple[str, int]) -> None:
    with socket.create_connection(place, timeout=0.05) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\n")
        for _ in range(int(PATIENCE / 0.05)):
            slow.sendall(b"X-Slow: 1\r\n")
            with suppress(TimeoutError):
                assert slow.recv(1) == b""
                return
    pytest.fail("It was never closed.")


def test_a_second_request_on_a_connection_is_timed_anew(place: tuple[str, int]) -> None:
    with socket.create_connection(place, timeout=PATIENCE) as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        while not answer.endswith(b"0\r\n\r\n"):
            answer += line.recv(1000)
        line.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert line.recv(1) == b""


def test_slow_bodies_and_answers_take_as_long_as_they_do(place: tuple[str, int]) -> None:
    assert ask(place, "/slow", slowly(b"one ", b"two ", b"three")) == b"begun one two three"


def test_a_websocket_stays_open(place: tuple[str, int]) -> None:
    with connect("ws://{}:{}/".format(*place)) as line:
        time.sleep(2 * http_protocol.HEADER_TIMEOUT)
        line.send("still here")
        assert line.recv(timeout=PATIENCE) == "still here"


def test_every_way_to_start_the_web_uses_it() -> None:
    name = f"{http_protocol.__name__}:{http_protocol.TimedHeaders.__name__}"
    assert f"--http {name}" in " ".join(parts.web(8000).command)
    assert f'"--http", {json.dumps(name)}' in (ROOT / "docker/Dockerfile").read_text()
    told = (ROOT / "docker/README.md").read_text()
    assert f"--http {name}" in told
    assert f"within {http_protocol.HEADER_TIMEOUT:.0f} s" in told
