"""Answers that are held: a long poll ends with the next event, a stream goes on; no thread waits."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.models import User
from django.db import connection

from experiments.core import notify, transcript
from experiments.models import ApiToken, Run
from experiments.runs.events import waiting
from maia_web.asgi import application
from tests.support import builders
from tests.support.builders import make_run
from workers.record.events import Ended

PATIENCE = 90
"""Seconds that a busy machine may take."""
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(owner: User) -> Run:
    made = make_run(owner)
    transcript.append(made.pk, "started", builders.started())
    return made


@pytest.fixture
def token(owner: User) -> str:
    return ApiToken.issue(owner, "tests")[1]


def opened(path: str, token: str, query: str = "", **headers: str) -> ApplicationCommunicator:
    """A request to the whole application."""
    sent = [(b"authorization", f"Bearer {token}".encode()), (b"host", b"localhost")]
    sent += [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http",
        "method": "GET",
        "path": f"/api/v1{path}",
        "raw_path": f"/api/v1{path}".encode(),
        "query_string": query.encode(),
        "headers": sent,
        "http_version": "1.1",
        "scheme": "http",
        "server": ("localhost", 80),
        "client": ("127.0.0.1", 1),
    }
    return ApplicationCommunicator(application, scope)


async def begun(path: str, token: str, query: str = "", **headers: str) -> ApplicationCommunicator:
    asked = opened(path, token, query, **headers)
    await asked.send_input({"type": "http.request", "body": b""})
    return asked


async def answer(asked: ApplicationCommunicator) -> tuple[int, Any]:
    start = await asked.receive_output(PATIENCE)
    body = await asked.receive_output(PATIENCE)
    return start["status"], json.loads(body["body"])


async def elsewhere(act: Callable[..., Any], *given: Any) -> None:
    """In another process, as far as the database can tell."""

    def done() -> None:
        act(*given)
        connection.close()

    await sync_to_async(done, thread_sensitive=False)()


def end_of(run: Run) -> None:
    transcript.append(run.pk, "cancelled", Ended("Stopped."))


async def test_what_is_there_is_told_at_once(run: Run, token: str, redis_url: str) -> None:
    status, told = await answer(await begun(f"/runs/{run.pk}/events", token, "after=0&wait=30"))
    assert status == 200
    assert [each["kind"] for each in told["items"]] == ["started"]
    assert (told["after"], told["over"]) == (1, False)


async def test_a_long_poll_ends_with_the_next_event(
    run: Run, token: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "LOOK_EVERY", 15.0)  # only the bell can tell in time
    asked = await begun(f"/runs/{run.pk}/events", token, "after=1&wait=30")
    assert await asked.receive_nothing(0.5)
    await elsewhere(end_of, run)
    _, told = await answer(asked)
    assert [each["kind"] for each in told["items"]] == ["cancelled"]
    assert told["over"]


async def test_a_long_poll_sees_the_event_without_redis(run: Run, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LOOK_EVERY", 0.1)
    asked = await begun(f"/runs/{run.pk}/events", token, "after=1&wait=20")
    assert await asked.receive_nothing(0.3)
    await elsewhere(end_of, run)
    assert (await answer(asked))[1]["over"]


async def test_a_long_poll_that_hears_nothing_says_so(run: Run, token: str, redis_url: str) -> None:
    _, told = await answer(await begun(f"/runs/{run.pk}/events", token, "after=1&wait=0.3"))
    assert told == {"items": [], "after": 1, "over": False}


async def test_a_long_poll_of_a_stranger_or_of_nonsense_is_not_held(run: Run, token: str) -> None:
    assert (await answer(await begun(f"/runs/{run.pk}/events", "none", "wait=30")))[0] == 401
    assert (await answer(await begun("/runs/999/events", token, "wait=30")))[0] == 404
    for wrong in ("wait=nan", "wait=-1", "wait=60", "wait=x", "after=x"):
        assert (await answer(await begun(f"/runs/{run.pk}/events", token, wrong)))[0] == 422


async def test_many_that_wait_hold_no_thread(run: Run, token: str, redis_url: str) -> None:
    before = threading.active_count()
    asked = [await begun(f"/runs/{run.pk}/events", token, "after=1&wait=30") for _ in range(12)]
    while notify.redis().zcard(f"asgi:group:{notify.group(run.pk)}") < 12 or threading.active_count() - before > 5:
        await asyncio.sleep(0.05)  # until all hear the bell, and what asked for them is done
    assert all([await each.receive_nothing(0.05) for each in asked])
    await elsewhere(end_of, run)
    assert all([(await answer(each))[1]["over"] for each in asked])


async def test_a_client_that_has_gone_is_forgotten(run: Run, token: str, redis_url: str) -> None:
    asked = await begun(f"/runs/{run.pk}/events", token, "after=1&wait=30")
    assert await asked.receive_nothing(0.5)
    await asked.send_input({"type": "http.disconnect"})
    await asyncio.wait_for(asked.wait(), PATIENCE)


async def test_a_stream_tells_every_event_once_and_ends(run: Run, token: str, redis_url: str) -> None:
    asked = await begun(f"/runs/{run.pk}/events/stream", token, last_event_id="0")
    start = await asked.receive_output(PATIENCE)
    assert dict(start["headers"])[b"Content-Type"] == b"text/event-stream"
    text = (await asked.receive_output(PATIENCE))["body"].decode()
    assert text.startswith("id: 1\nevent: started\ndata: {")
    await elsewhere(end_of, run)
    while "event: over" not in text:
        text += (await asked.receive_output(PATIENCE))["body"].decode()
    assert text.count("\nevent: started\n") == text.count("id: 2\nevent: cancelled\n") == 1
    await asyncio.wait_for(asked.wait(), PATIENCE)


async def test_a_stream_ends_with_the_access_it_began_with(
    run: Run, token: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "LOOK_EVERY", 0.1)
    asked = await begun(f"/runs/{run.pk}/events/stream", token)
    await asked.receive_output(PATIENCE)
    await elsewhere(ApiToken.objects.all().delete)
    await elsewhere(end_of, run)
    await asyncio.wait_for(asked.wait(), PATIENCE)
    told = b"".join([(await asked.receive_output())["body"] for _ in range(asked.output_queue.qsize())])
    assert b"cancelled" not in told
