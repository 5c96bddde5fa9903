"""The bell and the drafts: a dead Redis is survived, and nothing outlives its use."""

from __future__ import annotations

import gc
import socket
import time
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from channels.layers import channel_layers, get_channel_layer
from django.contrib.auth.models import User

from experiments.core import notify, transcript
from tests.support.builders import make_run, started


@pytest.fixture
def dead_redis(settings, tmp_path):
    """An address at which no Redis answers."""
    notify.end()
    url = f"unix://{tmp_path}/nobody.sock"
    settings.REDIS_URL = url
    settings.CHANNEL_LAYERS = {
        "default": {"BACKEND": "channels_redis.core.RedisChannelLayer", "CONFIG": {"hosts": [url]}}
    }
    channel_layers.backends.clear()
    yield
    notify.end()
    channel_layers.backends.clear()


def test_a_draft_is_kept_whole_for_late_viewers_until_it_is_cleared(redis_url: str) -> None:
    notify.draft(7, "Three words so", 0)
    notify.draft(7, "Three words so far", 14)
    assert notify.current(7) == ("Three words so far", None)
    notify.draft(7, "", 0)
    assert notify.current(7) == ("", None)


def test_progress_is_kept_until_it_is_cleared(redis_url: str) -> None:
    notify.progress(7, "Indexing", 3, 10)
    assert notify.current(7) == ("", {"what": "Indexing", "done": 3, "total": 10})
    notify.progress(7, "", 0, 0)
    assert notify.current(7) == ("", None)


def test_messages_are_sent_in_order_and_over_one_connection(redis_url: str) -> None:
    async def hear() -> list[int]:
        layer = get_channel_layer()
        channel = await layer.new_channel()
        await layer.group_add(notify.group(7), channel)
        before = await sync_to_async(count_connections)()
        for place in range(50):
            notify.send(notify.group(7), {"type": "run.progress", "done": place})
        heard = [(await layer.receive(channel))["done"] for _ in range(50)]
        assert await sync_to_async(count_connections)() - before <= 2, "the sender's, and one for hearing"
        return heard

    assert async_to_sync(hear)() == list(range(50))


def count_connections() -> int:
    return int(notify.redis().info("stats")["total_connections_received"])


def test_a_client_that_is_forgotten_closes_no_connection_that_is_in_use(redis_url: str) -> None:
    pool = notify.redis().connection_pool
    used = pool.get_connection()
    used.send_command("PING")
    notify.redis.cache_clear()  # as where two threads asked first at the same moment, and one client is kept
    gc.collect()
    assert used.read_response() == "PONG"
    pool.disconnect()


def test_nobody_waits_for_a_redis_that_does_not_answer(
    redis_url: str, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = {"address": f"redis://127.0.0.1:{silent.getsockname()[1]}", "socket_timeout": 2}
        settings.CHANNEL_LAYERS = {"default": settings.CHANNEL_LAYERS["default"] | {"CONFIG": {"hosts": [host]}}}
        channel_layers.backends.clear()
        for place in range(3):
            notify.send(notify.group(7), {"type": "run.progress", "done": place})
        assert caplog.text == "", "it has not been given up yet"
        while "Redis took no message to run.7, nor 2 behind it" not in caplog.text:
            time.sleep(0.05)


@pytest.mark.django_db(transaction=True)
def test_an_event_is_kept_when_redis_is_dead(dead_redis: None, owner: User) -> None:
    run = make_run(owner)
    transcript.append(run.pk, "started", started())
    notify.draft(run.pk, "words", 0)
    assert run.events.count() == 1
    assert notify.current(run.pk) == ("", None)
    assert notify.read_report("unit:1") is None
