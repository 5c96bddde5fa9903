"""The stream of a run: everything after what the viewer has, whatever happens to the bell."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.layers import channel_layers
from django.contrib.auth.models import AnonymousUser, User
from django.test import Client
from redis.asyncio import Redis

from experiments.core import notify, transcript
from experiments.core import sockets as consumers
from experiments.core.actors import Actor
from experiments.core.system_names import SystemNameMasker
from experiments.models import Run
from experiments.runs.events import socket
from experiments.runs.steering import actions
from tests.support.builders import experiment, make_run, replied, started
from tests.support.pictures import logged, seen
from tests.support.viewer import Viewer, tell
from workers.record.events import Ended, Resumed

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(owner: User) -> Run:
    return make_run(owner)


@pytest.fixture
def dead_redis(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No Redis answers; looks at the database come quickly."""
    notify.end()
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"
    layer = {"BACKEND": "channels_redis.core.RedisChannelLayer", "CONFIG": {"hosts": [settings.REDIS_URL]}}
    settings.CHANNEL_LAYERS = {"default": layer}
    channel_layers.backends.clear()
    monkeypatch.setattr(consumers, "LOOK_EVERY", 0.05)
    yield
    notify.end()
    channel_layers.backends.clear()


async def test_a_late_viewer_gets_everything_in_order_and_then_what_happens(
    redis_url: str, run: Run, owner: User
) -> None:
    await tell(run, "started", started())
    await tell(run, "reply", replied())
    async with Viewer(run, owner) as viewer:
        await viewer.until("event", seq=2)
        await tell(run, "reply", replied(2))
        await viewer.until("event", seq=3)
        assert viewer.seqs == [1, 2, 3]


async def test_a_viewer_who_comes_back_gets_only_what_is_missing(redis_url: str, run: Run, owner: User) -> None:
    for number in range(1, 61):
        await tell(run, "reply", replied(number))
    async with Viewer(run, owner, after=4) as viewer:
        await viewer.until("event", seq=60)
        assert viewer.seqs == list(range(5, 61)), "in batches, none left out, none twice"


async def test_what_is_streamed_is_what_the_page_draws(redis_url: str, run: Run, owner: User, client: Client) -> None:
    await tell(run, "started", started())
    await tell(run, "reply", replied())
    await sync_to_async(client.force_login)(owner)
    page = (await sync_to_async(client.get)(f"/runs/{run.pk}/")).content.decode()
    async with Viewer(run, owner) as viewer:
        await viewer.until("event", seq=2)
        for message in viewer.seen:
            if message["type"] == "event":
                assert message["html"] in page


async def test_an_event_brings_the_parts_that_sum_the_run_up(redis_url: str, run: Run, owner: User) -> None:
    async with Viewer(run, owner) as viewer:
        await viewer.until("tail")
        await tell(run, "experiment", experiment())
        card = await sync_to_async(seen)("a red ball", 38.4, "red")
        await tell(run, "result", logged(card))
        await viewer.until("event", kind="result")
        assert "a red ball: 38.40" in (await viewer.until("side"))["html"]


async def test_the_end_is_said_and_the_socket_closed(redis_url: str, run: Run, owner: User) -> None:
    async with Viewer(run, owner) as viewer:
        await viewer.until("tail")
        await tell(run, "concluded", Ended())
        await viewer.until("event", kind="concluded")
        assert "Concluded" in (await viewer.until("head"))["html"]
        await viewer.until("end")
        assert (await viewer.next())["code"] == 1000


async def test_whoever_watches_a_run_that_failed_sees_it_go_on(redis_url: str, run: Run, owner: User) -> None:
    async with Viewer(run, owner) as viewer:
        await viewer.until("tail")
        await tell(run, "failed", Ended("The disk was full."))
        assert (await viewer.until("state", status="failed"))["may"] == "retry"
        await sync_to_async(actions.resume)(Actor(owner), run.pk)
        await viewer.until("event", kind="resumed")
        assert "pause" in (await viewer.until("state", status="queued"))["may"]


async def test_a_stop_that_the_worker_has_not_seen_yet_is_shown(redis_url: str, run: Run, owner: User) -> None:
    async with Viewer(run, owner) as viewer:
        await viewer.until("state", stopping=False)
        await viewer.until("draft")
        await sync_to_async(Run.objects.filter(pk=run.pk).update)(cancel_requested=True)
        await sync_to_async(notify.publish_event)(run.pk, 0)
        await viewer.until("state", stopping=True)
        assert "Stopping…" in (await viewer.until("head"))["html"]


@pytest.mark.parametrize("who", ["stranger", "anonymous"])
async def test_a_stranger_hears_nothing(redis_url: str, run: Run, stranger: User, who: str) -> None:
    await tell(run, "started", started())
    async with Viewer(run, stranger if who == "stranger" else AnonymousUser()) as viewer:
        assert await viewer.next() == {"type": "closed", "code": consumers.NOT_YOURS}


async def test_a_run_that_does_not_exist_is_not_watched(redis_url: str, run: Run, owner: User) -> None:
    async with Viewer(Run(pk=999), owner) as viewer:
        assert (await viewer.next())["code"] == consumers.NOT_YOURS


async def test_viewers_of_one_run_hear_nothing_of_another(redis_url: str, run: Run, owner: User) -> None:
    other = await sync_to_async(make_run)(owner)
    async with Viewer(run, owner) as viewer:
        await viewer.until("draft")
        await tell(other, "reply", replied())
        await sync_to_async(notify.draft)(other.pk, "secret", 0)
        await tell(run, "reply", replied())
        await viewer.until("event")
        assert viewer.seqs == [1]
        assert "secret" not in json.dumps(viewer.seen)


# --- words under way ---


async def test_words_come_as_they_are_written(redis_url: str, run: Run, owner: User) -> None:
    async with Viewer(run, owner) as viewer:
        await viewer.until("draft", text="")
        await sync_to_async(notify.draft)(run.pk, "Start from", 0)
        assert (await viewer.until("draft")) == {"type": "draft", "offset": 0, "text": "Start from"}
        await sync_to_async(notify.draft)(run.pk, "Start from the exemplars", 10)
        assert (await viewer.until("draft")) == {"type": "draft", "offset": 10, "text": " the exemplars"}


async def test_a_late_viewer_gets_the_whole_draft_and_the_progress(redis_url: str, run: Run, owner: User) -> None:
    await sync_to_async(notify.draft)(run.pk, "Three words so far", 15)
    await sync_to_async(notify.progress)(run.pk, "Drawing", 3, 10)
    async with Viewer(run, owner) as viewer:
        assert (await viewer.until("draft"))["text"] == "Three words so far"
        assert (await viewer.until("progress"))["done"] == 3


async def test_a_viewer_who_missed_a_piece_gets_the_whole_draft(redis_url: str, run: Run, owner: User) -> None:
    async with Viewer(run, owner) as viewer:
        await viewer.until("draft", text="")
        await sync_to_async(notify.draft)(run.pk, "a piece nobody heard, and more", 21)
        assert (await viewer.until("draft")) == {"type": "draft", "offset": 0, "text": "a piece nobody heard, and more"}


async def test_a_cleared_draft_is_cleared(redis_url: str, run: Run, owner: User) -> None:
    async with Viewer(run, owner) as viewer:
        await viewer.until("draft", text="")
        await sync_to_async(notify.draft)(run.pk, "words", 0)
        await viewer.until("draft", text="words")
        await sync_to_async(notify.draft)(run.pk, "", 5)
        assert (await viewer.until("draft")) == {"type": "draft", "offset": 0, "text": ""}


# --- Redis ---


async def test_events_come_without_redis(dead_redis: None, run: Run, owner: User) -> None:
    async with Viewer(run, owner) as viewer:
        await viewer.until("tail")
        await tell(run, "reply", replied())
        await viewer.until("event", seq=1)
        await tell(run, "concluded", Ended())
        await viewer.until("end")


async def test_a_lost_bell_delays_and_hides_nothing(
    redis_url: str, run: Run, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "LOOK_EVERY", 0.05)
    async with Viewer(run, owner) as viewer:
        await viewer.until("draft")
        monkeypatch.setattr(notify, "publish_event", lambda *_: None)
        await tell(run, "reply", replied())
        await viewer.until("event", seq=1)


async def test_the_bell_is_heard_again_after_redis_forgot_everybody(
    redis_url: str, run: Run, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "JOIN_EVERY", 0.1)
    async with Viewer(run, owner) as viewer:
        await viewer.until("draft")
        async with Redis.from_url(redis_url) as redis:
            await redis.flushall()
        while not notify.redis().zcard(f"asgi:group:{notify.group(run.pk)}"):
            await asyncio.sleep(0.05)
        await sync_to_async(notify.draft)(run.pk, "still here", 0)
        await viewer.until("draft", text="still here")


# --- what a browser sends ---


async def test_a_ping_is_answered(redis_url: str, run: Run, owner: User) -> None:
    async with Viewer(run, owner) as viewer:
        await viewer.say('{"type": "ping"}')
        await viewer.until("pong")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"type": "run.event"}', '{"type": "ping", "x": 1}', "é"])
async def test_anything_else_is_ignored(redis_url: str, run: Run, owner: User, text: str) -> None:
    async with Viewer(run, owner) as viewer:
        await viewer.say(text)
        await viewer.say('{"type": "ping"}')
        await viewer.until("pong")


@pytest.mark.parametrize(("text", "times"), [("x" * 101, 1), ('{"type": "ping"}', consumers.MAX_MESSAGES + 1)])
async def test_a_browser_that_says_too_much_is_cut_off(
    redis_url: str, run: Run, owner: User, text: str, times: int
) -> None:
    async with Viewer(run, owner) as viewer:
        for _ in range(times):
            await viewer.say(text)
        while (message := await viewer.next())["type"] != "closed":
            pass
        assert message["code"] == consumers.TOO_MUCH


@pytest.mark.parametrize("after", ["", "x", "-1", "9" * 30, "1.5", "%00"])
async def test_an_after_that_is_no_number_means_from_the_start(
    redis_url: str, run: Run, owner: User, after: str
) -> None:
    await tell(run, "started", started())
    async with Viewer(run, owner, after) as viewer:
        await viewer.until("event", seq=1)


def test_what_sums_a_run_up_is_drawn_once_for_all_viewers(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    monkeypatch.setattr(socket.rendering, "head", lambda of: drawn.append(of.last_seq) or "")
    summaries = socket.Summaries()
    transcript.append(run.pk, "failed", Ended("The disk was full."))
    run.refresh_from_db()
    for _ in range(3):
        assert [each.kind for each in summaries.of(run)] == ["head", "tail"]
    assert drawn == [1]
    transcript.append(run.pk, "resumed", Resumed(0, "owner"))
    run.refresh_from_db()
    summaries.of(run)
    assert drawn == [1, 2]


def test_of_a_run_that_failed_nothing_is_read_until_its_bell_rings(run: Run, owner: User) -> None:
    transcript.append(run.pk, "failed", Ended("The disk was full."))
    found = socket.read_news(run.pk, 1, SystemNameMasker(owner))
    assert (found.over, found.rests) == (False, True)
    transcript.append(run.pk, "resumed", Resumed(0, "owner"))
    assert not socket.read_news(run.pk, 1, SystemNameMasker(owner)).rests
