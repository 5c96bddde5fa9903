"""The bell and the drafts: a dead Redis is survived, and nothing outlives its use."""

from __future__ import annotations

import threading

import pytest
from channels.layers import channel_layers
from django.contrib.auth.models import User

from experiments import live, transcript
from tests.builders import as_json, make_run, started


@pytest.fixture
def dead_redis(settings, tmp_path):
    """An address at which no Redis answers."""
    url = f"unix://{tmp_path}/nobody.sock"
    settings.REDIS_URL = url
    settings.CHANNEL_LAYERS = {
        "default": {"BACKEND": "channels_redis.core.RedisChannelLayer", "CONFIG": {"hosts": [url]}}
    }
    channel_layers.backends.clear()
    live.redis.cache_clear()
    yield
    live.redis.cache_clear()
    channel_layers.backends.clear()


def test_a_draft_is_kept_whole_for_late_viewers_until_it_is_cleared(redis_url: str) -> None:
    live.draft(7, "Three words so", 0)
    live.draft(7, "Three words so far", 14)
    assert live.current(7) == ("Three words so far", None)
    live.draft(7, "", 0)
    assert live.current(7) == ("", None)


def test_progress_is_kept_until_it_is_cleared(redis_url: str) -> None:
    live.progress(7, "Indexing", 3, 10)
    assert live.current(7) == ("", {"what": "Indexing", "done": 3, "total": 10})
    live.progress(7, "", 0, 0)
    assert live.current(7) == ("", None)


def test_a_run_is_watched_as_long_as_somebody_says_so(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not live.watched(7)
    live.watch(7)
    assert live.watched(7)
    assert not live.watched(8)
    assert 0 < live.redis().ttl("maia:watched:7") <= live.WATCHED_SECONDS
    monkeypatch.setattr(live, "muted", threading.Event())
    live.muted.set()
    assert not live.watched(7), "a command line knows no viewers"


@pytest.mark.django_db(transaction=True)
def test_an_event_is_kept_when_redis_is_dead(dead_redis: None, owner: User) -> None:
    run = make_run(owner)
    transcript.append(run.pk, "started", as_json(started()))
    live.draft(run.pk, "words", 0)
    assert run.events.count() == 1
    assert live.current(run.pk) == ("", None)
    assert live.reported("unit:1") is None
    live.watch(run.pk)
    assert not live.watched(run.pk)
