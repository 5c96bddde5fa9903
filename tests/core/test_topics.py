"""Bells of topics: who hears which, what a bell says, and what becomes of it when access or Redis is lost."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from channels.routing import URLRouter
from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction
from redis.asyncio import Redis

from experiments.core import access, notify, sockets
from experiments.core.sockets import MAX_TOPICS
from experiments.models import Member
from experiments.urls import websocket_urlpatterns

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE = 60.0
"""Seconds after which a message counts as lost."""


class Page:
    """A page that hears topics."""

    def __init__(self, user: Any, *topics: str) -> None:
        query = "&".join(f"topic={topic}" for topic in topics).encode()
        scope = {"type": "websocket", "path": "/ws/live/", "query_string": query, "headers": [], "user": user}
        self.socket: Any = ApplicationCommunicator(URLRouter(websocket_urlpatterns), scope)  # type: ignore[no-untyped-call]

    async def __aenter__(self) -> Page:
        await self.socket.send_input({"type": "websocket.connect"})
        assert (await self.socket.receive_output(PATIENCE))["type"] == "websocket.accept"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.socket.send_input({"type": "websocket.disconnect", "code": 1001})
        await self.socket.wait(PATIENCE)

    async def next(self) -> Any:
        message = await self.socket.receive_output(PATIENCE)
        return message["code"] if message["type"] == "websocket.close" else json.loads(message["text"])


async def ring(topic: str) -> None:
    await sync_to_async(notify.publish_topic)(topic)


async def test_a_page_hears_its_topics_and_no_others(redis_url: str, owner: User) -> None:
    async with Page(owner, "comments.run.7", f"user.{owner.pk}") as page:
        assert await page.next() == {"type": "ready"}
        await ring("comments.run.8")
        await ring("comments.run.7")
        assert await page.next() == {"type": "bell", "topic": "comments.run.7"}
        await ring(f"user.{owner.pk}")
        assert await page.next() == {"type": "bell", "topic": f"user.{owner.pk}"}


async def test_a_bell_rings_once_what_it_tells_of_is_kept(redis_url: str, owner: User) -> None:
    async with Page(owner, "runs") as page:
        await page.next()
        await sync_to_async(tell_and_fail)()
        await ring("runs")
        assert await page.next() == {"type": "bell", "topic": "runs"}
        assert await page.socket.receive_nothing(0.2)


def tell_and_fail() -> None:
    with transaction.atomic():
        notify.publish_topic("runs")
        transaction.set_rollback(True)


@pytest.mark.parametrize(
    "topics",
    [
        [],
        ["nonsense"],
        ["user.{other}"],
        ["user"],
        ["runs", "user.{other}"],
        ["user.{own}%0a"],
        ["comments.run.0"],
        ["comments.run.7.8"],
        [""],
        ["x" * 500],
    ],
)
async def test_what_is_no_topic_or_not_ones_own_is_refused(
    redis_url: str, owner: User, teammate: User, topics: list[str]
) -> None:
    known = {"other": teammate.pk, "own": owner.pk}
    async with Page(owner, *(topic.format(**known) for topic in topics)) as page:
        assert await page.next() == sockets.NOT_YOURS


@pytest.mark.parametrize("who", ["stranger", "anonymous"])
async def test_a_stranger_hears_nothing(redis_url: str, stranger: User, who: str) -> None:
    async with Page(stranger if who == "stranger" else AnonymousUser(), "runs") as page:
        assert await page.next() == sockets.NOT_YOURS


async def test_more_topics_than_a_page_has_are_refused(redis_url: str, owner: User) -> None:
    async with Page(owner, *(f"comments.run.{n + 1}" for n in range(MAX_TOPICS + 1))) as page:
        assert await page.next() == sockets.TOO_MUCH


async def test_it_closes_when_access_is_lost(redis_url: str, owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "LOOK_EVERY", 0.05)
    async with Page(owner, "runs") as page:
        await page.next()
        await Member.objects.filter(user=owner).adelete()
        assert await page.next() == sockets.NOT_YOURS


async def test_bells_that_may_be_lost_are_told_by_a_new_beginning(
    redis_url: str, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "JOIN_EVERY", 0.1)
    async with Page(owner, "runs") as page:
        await page.next()
        async with Redis.from_url(redis_url) as redis:
            await redis.flushall()
            while not [group async for group in redis.scan_iter("asgi:group:*runs*")]:
                await asyncio.sleep(0.05)
        await ring("runs")
        assert await page.next() == {"type": "bell", "topic": "runs"}


def test_a_topic_has_a_name_that_is_known(owner: User, teammate: User, stranger: User) -> None:
    assert access.may_hear(teammate, ["comments.run.7"])
    assert access.may_hear(owner, [f"user.{owner.pk}"])
    assert not access.may_hear(owner, [f"user.{teammate.pk}"])
    assert not access.may_hear(owner, ["secrets.run.7"])
    assert not access.may_hear(stranger, ["runs"])
