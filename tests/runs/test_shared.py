"""Many viewers of a run in one process: what is new is read and drawn once for all who may read the same."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.models import User
from redis.asyncio import Redis

from experiments.core import sockets
from experiments.core.actors import Actor
from experiments.core.system_names import SystemNameMasker
from experiments.display import events as rendering
from experiments.models import ReviewQueue, Run
from experiments.reviews import actions as reviews
from experiments.runs.events import socket
from experiments.runs.events.shared import Message, RunUpdate, SharedUpdates
from tests.support.builders import make_run, replied, started
from tests.support.people import member
from tests.support.viewer import PATIENCE, Viewer, tell
from workers import registry

pytestmark = [pytest.mark.usefixtures("redis_url"), pytest.mark.django_db(transaction=True)]
VIEWERS = 12
HIDDEN = "hayloft-kind"
"""A word that nothing else on a page has."""


@pytest.fixture
def run(owner: User) -> Run:
    return make_run(owner)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """What was drawn: the events of each drawing that had some."""
    calls: list[list[int]] = []
    render = rendering.render_events

    def note(run: Run, events: Any, *rest: Any, **options: Any) -> Any:
        if found := [event.seq for event in events]:
            calls.append(found)
        return render(run, events, *rest, **options)

    monkeypatch.setattr(rendering, "render_events", note)
    monkeypatch.setattr(socket, "_news", SharedUpdates())
    return calls


async def test_an_event_is_drawn_once_for_all_who_watch(run: Run, owner: User, drawn: list[list[int]]) -> None:
    await tell(run, "started", started())
    async with AsyncExitStack() as stack:
        viewers = [await stack.enter_async_context(Viewer(run, owner)) for _ in range(VIEWERS)]
        for viewer in viewers:
            await viewer.until("draft")  # joined: bells are heard from now on
        drawn.clear()
        for number in range(1, 6):
            await tell(run, "reply", replied(number))
            for viewer in viewers:
                await viewer.until("event", seq=number + 1)
        assert drawn == [[2], [3], [4], [5], [6]]
        assert all(viewer.seqs == [1, 2, 3, 4, 5, 6] for viewer in viewers)


class Stuck(Viewer):
    """A browser that takes no message after the first few, as one whose machine went to sleep."""

    def __init__(self, run: Run, user: Any, takes: int) -> None:
        super().__init__(run, user)
        self.left, self.closing = takes, asyncio.Event()
        self.socket = ApplicationCommunicator(self._slowly(self.socket.application), self.socket.scope)  # type: ignore[no-untyped-call]

    def _slowly(self, application: Any) -> Any:
        async def answer(scope: Any, receive: Any, send: Any) -> None:
            async def take(message: Any) -> None:
                self.left -= 1
                if message["type"] == "websocket.close":
                    self.closing.set()
                if self.left < 0:
                    await asyncio.Event().wait()
                await send(message)

            await application(scope, receive, take)

        return answer


async def test_who_stops_reading_delays_nobody_and_is_let_go(
    run: Run, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "TAKEN_WITHIN", 0.3)
    monkeypatch.setattr(sockets, "LOOK_EVERY", 0.1)
    async with Viewer(run, owner) as viewer, Stuck(run, owner, takes=4) as stuck:
        await viewer.until("draft")
        for number in range(1, 8):
            await tell(run, "reply", replied(number))
            await viewer.until("event", seq=number)
        await asyncio.wait_for(stuck.closing.wait(), PATIENCE)
        await tell(run, "reply", replied(8))
        await viewer.until("event", seq=8)
    assert viewer.seqs == [*range(1, 9)]


async def test_when_redis_begins_anew_nobody_misses_anything(
    redis_url: str, run: Run, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "LOOK_EVERY", 0.1)
    monkeypatch.setattr(sockets, "JOIN_EVERY", 0.1)
    async with AsyncExitStack() as stack:
        viewers = [await stack.enter_async_context(Viewer(run, owner)) for _ in range(VIEWERS)]
        for number in range(1, 10):
            if number % 3 == 0:
                await forget_everything(redis_url)
            await tell(run, "reply", replied(number))
        for viewer in viewers:
            await viewer.until("event", seq=9)
            assert viewer.seqs == [*range(1, 10)], "in order, none left out, none twice"


async def forget_everything(url: str) -> None:
    """As a Redis that was started again: all connections are cut, and nothing is there any more."""
    async with Redis.from_url(url) as redis:
        await redis.flushall()
        await redis.client_kill_filter(_type="normal", skipme=True)


async def test_a_bell_is_never_answered_with_what_was_read_before_it(owner: User) -> None:
    shared, seq = SharedUpdates(), 0

    def read(names: SystemNameMasker) -> RunUpdate:
        return RunUpdate([Message.of("state", seq=seq)], seq, over=False, rests=False)

    async def ask(since: float) -> int:
        return (await shared.read((1, 0), since, SystemNameMasker(owner), read)).seq

    assert await ask(0.0) == 0
    seq = 5
    assert await ask(0.0) == 0, "nobody asked for newer"
    since = shared.hear("bell")
    assert await ask(since) == 5
    seq = 6
    assert shared.hear("bell") == since
    assert await ask(since) == 5
    assert await ask(shared.hear("another")) == 6


# --- for whose eyes ---


async def test_who_may_not_know_a_related_system_is_not_sent_what_was_drawn_for_who_may(run: Run, owner: User) -> None:
    judge = await sync_to_async(member)("judge", "ADMIN")
    await sync_to_async(ask_again)(run, judge)
    async with Viewer(run, owner) as one, Viewer(run, judge) as other:
        for viewer in (one, other):
            await viewer.until("draft")
        await tell(run, "reply", replied())
        for viewer in (one, other):
            await viewer.until("event", kind="reply")
            await viewer.until("side")
    assert HIDDEN in str(one.seen)
    assert HIDDEN not in str(other.seen)
    assert registry.blind_name("synthetic", f"synthetic:{HIDDEN}", HIDDEN, 1) in str(other.seen)


def ask_again(run: Run, judge: User) -> None:
    """Ask the same of a synthetic neuron, which this person is to judge unseen."""
    system = {"system_kind": "synthetic", "model": f"synthetic:{HIDDEN}", "layer": HIDDEN, "unit": 1}
    child = make_run(run.owner, parent=run, status="concluded", **system)
    queue = ReviewQueue(name="q", filters=f"layer={HIDDEN}")
    reviews.make_queue(Actor(run.owner), Run.objects.filter(pk=child.pk), queue, [judge])
