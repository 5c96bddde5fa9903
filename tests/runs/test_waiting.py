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
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from experiments.core import notify, sessions, transcript
from experiments.models import ApiToken, Member, Run
from experiments.runs.events import api
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


def opened(path: str, token: str = "", query: str = "", **headers: str) -> ApplicationCommunicator:
    """A request to the whole application."""
    sent = [(b"authorization", f"Bearer {token}".encode())] if token else []
    sent += [(b"host", b"localhost")]
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


async def begun(path: str, token: str = "", query: str = "", **headers: str) -> ApplicationCommunicator:
    asked = opened(path, token, query, **headers)
    await asked.send_input({"type": "http.request", "body": b""})
    return asked


async def held(path: str, token: str, query: str) -> ApplicationCommunicator:
    """A long poll that has been let in, and is told nothing yet."""
    asked = await begun(path, token, query)
    assert (await asked.receive_output(PATIENCE))["status"] == 200
    assert await asked.receive_nothing(0.3)
    return asked


async def rest(asked: ApplicationCommunicator) -> bytes:
    """What is sent until the answer is complete."""
    body, more = b"", True
    while more:
        message = await asked.receive_output(PATIENCE)
        body, more = body + message.get("body", b""), message.get("more_body", False)
    await asked.wait(PATIENCE)
    return body


async def answer(asked: ApplicationCommunicator) -> tuple[int, Any]:
    start = await asked.receive_output(PATIENCE)
    return start["status"], json.loads(await rest(asked))


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
    monkeypatch.setattr(api, "LOOK_EVERY", 15.0)  # only the bell can tell in time
    asked = await held(f"/runs/{run.pk}/events", token, "after=1&wait=30")
    await elsewhere(end_of, run)
    told = json.loads(await rest(asked))
    assert [each["kind"] for each in told["items"]] == ["cancelled"]
    assert told["over"]


async def test_an_answer_that_waited_is_as_one_that_did_not(
    run: Run, token: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "LOOK_EVERY", 0.1)
    asked = await begun(f"/runs/{run.pk}/events", token, "after=1&wait=30")
    start = await asked.receive_output(PATIENCE)
    await elsewhere(end_of, run)
    waited = await rest(asked)
    at_once = await begun(f"/runs/{run.pk}/events", token, "after=1&wait=30")
    plain = await at_once.receive_output(PATIENCE)
    assert await rest(at_once) == waited
    shown, known = (dict(each["headers"]) for each in (start, plain))
    ours = (b"Content-Type", b"Cache-Control", b"Vary", b"RateLimit-Limit", b"Content-Security-Policy")
    assert {name: shown[name] for name in ours} == {name: known[name] for name in ours}
    counted = [int(notify.redis().get(key)) for key in notify.redis().scan_iter("maia:rate:*")]
    assert sum(counted) == 2, "looks are not counted"


async def test_a_long_poll_sees_the_event_without_redis(run: Run, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "LOOK_EVERY", 0.1)
    asked = await held(f"/runs/{run.pk}/events", token, "after=1&wait=20")
    await elsewhere(end_of, run)
    assert json.loads(await rest(asked))["over"]


async def test_a_long_poll_that_hears_nothing_says_so(run: Run, token: str, redis_url: str) -> None:
    _, told = await answer(await begun(f"/runs/{run.pk}/events", token, "after=1&wait=0.3"))
    assert told == {"items": [], "after": 1, "over": False}


async def test_a_long_poll_of_a_stranger_or_of_nonsense_is_not_held(run: Run, token: str) -> None:
    assert (await answer(await begun(f"/runs/{run.pk}/events", "none", "wait=30")))[0] == 401
    assert (await answer(await begun("/runs/999/events", token, "wait=30")))[0] == 404
    for wrong in ("wait=nan", "wait=-1", "wait=60", "wait=x", "after=x"):
        assert (await answer(await begun(f"/runs/{run.pk}/events", token, wrong)))[0] == 422


async def test_many_that_wait_hold_no_thread_and_block_nobody(run: Run, token: str, redis_url: str) -> None:
    before, many = threading.active_count(), 60
    asked = [await begun(f"/runs/{run.pk}/events", token, "after=1&wait=30") for _ in range(many)]
    while notify.redis().zcard(f"asgi:group:{notify.group(run.pk)}") < many or threading.active_count() - before > 8:
        await asyncio.sleep(0.05)  # until all hear the bell, and what asked for them is done
    assert (await answer(await begun(f"/runs/{run.pk}", token)))[0] == 200
    assert [(await each.receive_output(PATIENCE))["status"] for each in asked] == [200] * many
    assert all([await each.receive_nothing(0.01) for each in asked]), "somebody else was answered before them"
    await elsewhere(end_of, run)
    assert all([json.loads(await rest(each))["over"] for each in asked])


@pytest.mark.parametrize("path", ["events?wait=30", "events/stream"])
async def test_a_client_that_has_gone_is_forgotten(path: str, run: Run, token: str, redis_url: str) -> None:
    path, _, query = path.partition("?")
    asked = await begun(f"/runs/{run.pk}/{path}", token, f"after=1&{query}".strip("&"))
    group = f"asgi:group:{notify.group(run.pk)}"
    while not notify.redis().zcard(group):
        await asyncio.sleep(0.05)
    await asked.send_input({"type": "http.disconnect"})
    await asyncio.wait_for(asked.wait(PATIENCE), PATIENCE)
    assert notify.redis().zcard(group) == 0


async def test_a_stream_tells_every_event_once_and_ends(run: Run, token: str, redis_url: str) -> None:
    asked = await begun(f"/runs/{run.pk}/events/stream", token, last_event_id="0")
    start = await asked.receive_output(PATIENCE)
    headers = dict(start["headers"])
    assert (headers[b"Content-Type"], headers[b"Cache-Control"]) == (b"text/event-stream", b"no-store")
    first = (await asked.receive_output(PATIENCE))["body"].decode()
    assert first.startswith("id: 1\nevent: started\ndata: {")
    await elsewhere(end_of, run)
    text = first + (await rest(asked)).decode()
    assert text.endswith("event: over\ndata: {}\n\n")
    assert text.count("\nevent: started\n") == text.count("id: 2\nevent: cancelled\n") == 1


async def test_a_stream_of_many_events_needs_no_bell_for_the_next_ones(
    run: Run, token: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "MAX_PAGE_SIZE", 1)
    monkeypatch.setattr(api, "LOOK_EVERY", PATIENCE * 2)
    await elsewhere(end_of, run)
    asked = await begun(f"/runs/{run.pk}/events/stream", token)
    assert b"event: over" in (await asked.receive_output(PATIENCE), await rest(asked))[1]


@pytest.mark.parametrize("end", ["token", "role", "account"])
async def test_a_stream_ends_with_the_access_it_began_with(
    end: str, run: Run, owner: User, token: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "LOOK_EVERY", 0.1)
    asked = await begun(f"/runs/{run.pk}/events/stream", token)
    await asked.receive_output(PATIENCE)
    ends: dict[str, Callable[[], Any]] = {
        "token": lambda: [each.revoke() for each in ApiToken.objects.all()],
        "role": Member.objects.filter(user=owner).delete,
        "account": lambda: User.objects.filter(pk=owner.pk).update(is_active=False),
    }
    await elsewhere(ends[end])
    await elsewhere(end_of, run)
    assert b"cancelled" not in await rest(asked)


async def test_a_stream_ends_with_its_session(
    run: Run, owner: User, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "LOOK_EVERY", 0.1)
    client = Client()
    await elsewhere(client.force_login, owner)
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    asked = await begun(f"/runs/{run.pk}/events/stream", cookie=f"{settings.SESSION_COOKIE_NAME}={session}")
    await asked.receive_output(PATIENCE)
    assert b"started" in (await asked.receive_output(PATIENCE))["body"]
    await elsewhere(sessions.end_all, owner)
    await elsewhere(end_of, run)
    assert b"cancelled" not in await rest(asked)
