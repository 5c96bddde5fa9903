"""Bodies that are too large are refused before they are read, by their announced length and by counting."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from experiments.core import request_limits
from experiments.models import ApiToken, TokenScope
from maia_web.asgi import application

pytestmark = pytest.mark.django_db(transaction=True)

CHUNK = b"x" * (1 << 16)
MOST = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
MULTIPART = "multipart/form-data; boundary=b"
UPLOADS = ["/imports/bring/", "/api/v1/imports", "/api/v1/imports/batch"]


@dataclass
class Answer:
    """What came back, and how many bytes of the body were asked for until then."""

    status: int
    headers: dict[str, str]
    body: bytes
    taken: int


async def chunks(count: int) -> AsyncIterator[dict[str, Any]]:
    for left in range(count, 0, -1):
        yield {"type": "http.request", "body": CHUNK, "more_body": left > 1}


def post(path: str, count: int, *, announced: bool = True, **headers: str) -> Answer:
    """Send so many chunks to the whole application."""
    sent = {"host": "localhost", "content-type": "text/plain", **headers}
    sent |= {"content-length": str(count * len(CHUNK))} if announced else {"transfer-encoding": "chunked"}
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
        "http_version": "1.1",
        "scheme": "http",
        "server": ("localhost", 80),
        "client": ("127.0.0.1", 1),
    }

    async def go() -> Answer:
        source, heard, taken = chunks(count), [], 0

        async def receive() -> dict[str, Any]:
            nonlocal taken
            message = await anext(source, None)
            if message is None:
                await asyncio.get_running_loop().create_future()
                raise AssertionError
            taken += len(CHUNK)
            return message

        async def send(message: Any) -> None:
            heard.append(message)

        await application(scope, receive, send)
        start, *rest = heard
        told = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], told, b"".join(each.get("body", b"") for each in rest), taken)

    return asyncio.run(go())


def test_a_page_refuses_a_body_by_its_length_before_it_is_read() -> None:
    for path in ("/sign-in/", "/runs/", "/nowhere/"):
        answer = post(path, 1 << 14)
        assert (answer.status, answer.taken) == (413, 0)
        assert b"This is too large to be sent" in answer.body
        assert "default-src" in answer.headers["content-security-policy"]


def test_a_page_counts_a_body_that_does_not_tell_its_length() -> None:
    answer = post("/sign-in/", 1 << 14, announced=False)
    assert answer.status == 413
    assert MOST < answer.taken <= MOST + len(CHUNK)


def test_the_api_says_the_same_in_its_language() -> None:
    told = post("/api/v1/runs", 1 << 14)
    assert (told.status, told.taken) == (413, 0)
    assert json.loads(told.body)["type"].endswith("#problem-too-large")
    counted = post("/api/v1/runs", 1 << 14, announced=False)
    assert (counted.status, counted.taken <= MOST + len(CHUNK)) == (411, True)


def test_a_body_that_fits_arrives_whole() -> None:
    assert post("/sign-in/", MOST // len(CHUNK)).status == 403  # no CSRF token: it was read, and looked at
    assert post("/sign-in/", MOST // len(CHUNK), announced=False).taken == MOST


def test_a_stream_that_has_answered_is_not_answered_again() -> None:
    """One begins before its client's body is there, and ends when that grows too large."""
    source, heard = chunks(1 << 14), []

    async def stream(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while (await receive())["type"] != "http.disconnect":
            pass

    async def send(message: Any) -> None:
        heard.append(message["type"])

    scope = {"type": "http", "method": "GET", "path": "/api/v1/runs/1/events/stream", "headers": []}
    asyncio.run(request_limits.Bounded(stream)(scope, source.__anext__, send))
    assert heard == ["http.response.start"]


@pytest.mark.parametrize("path", UPLOADS)
@pytest.mark.parametrize("announced", [True, False])
@pytest.mark.parametrize("who", ["nobody", "a stranger", "a viewer", "a token that may not write"])
def test_nobody_sends_a_file_who_may_not_import_it(
    path: str, announced: bool, who: str, owner: User, teammate: User, stranger: User
) -> None:
    headers = {"content-type": MULTIPART}
    if who == "a token that may not write":
        headers["authorization"] = f"Bearer {ApiToken.issue(owner, 'reads', TokenScope.READ)[1]}"
    elif who != "nobody":
        headers["cookie"] = cookie(stranger if who == "a stranger" else teammate)
    answer = post(path, 1 << 14, announced=announced, **headers)
    assert answer.taken <= len(CHUNK)
    assert 300 <= answer.status < 500


@pytest.mark.parametrize("path", UPLOADS)
def test_a_researcher_may_send_a_large_file(path: str, owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_limits, "UPLOAD", 2 * MOST)
    headers = {"content-type": MULTIPART, "cookie": cookie(owner)}
    if path.startswith("/api/"):
        headers["authorization"] = f"Bearer {ApiToken.issue(owner, 'writes', TokenScope.WRITE)[1]}"
    read = post(path, 2 * MOST // len(CHUNK), **headers)
    assert (read.taken, read.status in {400, 403, 422}) == (2 * MOST, True)
    assert post(path, 4 * MOST // len(CHUNK), **headers).taken == 0


@pytest.mark.parametrize("path", UPLOADS)
def test_a_body_that_the_disk_does_not_take_is_answered(
    path: str, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Django spools it to a file before any view is called: here to a device that the kernel says is full."""
    headers = {"content-type": MULTIPART, "cookie": cookie(owner)}
    with Path("/dev/full").open("w+b", buffering=0) as full:
        monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: full)
        answer = post(path, 2 * settings.FILE_UPLOAD_MAX_MEMORY_SIZE // len(CHUNK), **headers)
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
    assert b"There is no room left on the disk of the web server." in answer.body
    assert path.startswith("/api/") == (answer.headers["content-type"] == "application/problem+json")


def cookie(user: User) -> str:
    client = Client()
    client.force_login(user)
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


@pytest.mark.parametrize(
    "content", [b"", b"--b", b"--b\r\n", b"--b\r\nContent-Disposition: form-data; name=\xff\r\n\r\n"]
)
@pytest.mark.parametrize("kind", [MULTIPART, "multipart/form-data", "multipart/form-data; boundary=\xff"])
def test_a_malformed_form_is_refused_with_a_sentence(content: bytes, kind: str, owner: User) -> None:
    token = ApiToken.issue(owner, "writes", TokenScope.WRITE)[1]
    answer = Client(raise_request_exception=False).post(
        "/api/v1/imports", content, content_type=kind, headers={"Authorization": f"Bearer {token}"}
    )
    assert answer.status_code in {400, 422}, answer.content
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/ws/", "/ws/nowhere/", "/", "/ws/runs/x/", "/ws/runs/1/../"])
def test_a_socket_to_nowhere_is_closed(path: str) -> None:
    scope = {
        "type": "websocket",
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"origin", b"http://localhost")],
        "subprotocols": [],
    }

    async def go() -> None:
        socket = ApplicationCommunicator(application, scope)
        await socket.send_input({"type": "websocket.connect"})
        assert (await socket.receive_output(timeout=60))["type"] == "websocket.close"

    asyncio.run(go())
