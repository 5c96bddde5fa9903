"""Whether the installation answers: for load balancers and containers, who tell nobody their name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.storage import FileSystemStorage
from django.test import Client
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from experiments.core import notify
from experiments.installation import health

pytestmark = pytest.mark.django_db(transaction=True)

AT_ONCE = Retry(NoBackoff(), 0)
"""Who is away is not asked again after random waits."""


def test_the_process_answers_though_nothing_else_does(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "redis", lambda: Redis(port=1, retry=AT_ONCE))
    answer = client.get("/healthz")
    assert (answer.status_code, answer.content) == (200, b"ok\n")
    assert "no-store" in answer["Cache-Control"]


def test_it_is_ready_when_all_parts_are(client: Client, redis_url: str) -> None:
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (
        200,
        {"ready": True, "parts": {"database": "ok", "redis": "ok", "storage": "ok"}},
    )


def test_without_redis_it_is_not_and_strangers_are_not_told_why(
    client: Client, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "redis", lambda: Redis(port=1, retry=AT_ONCE))
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["parts"]["redis"]) == (503, "not ready")
    client.force_login(owner)
    told = client.get("/readyz")
    assert (told.status_code, told.json()["ready"]) == (503, False)
    assert "ConnectionError" in told.json()["parts"]["redis"]
    assert told.json()["parts"]["database"] == "ok"


def test_a_full_disk_and_a_folder_without_the_right_are_named(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, redis_url: str
) -> None:
    monkeypatch.setattr(health, "default_storage", FileSystemStorage(tmp_path))
    assert health.probe()["storage"] == ""
    monkeypatch.setattr(health, "MIN_FREE", 1 << 60)
    assert health.probe()["storage"].startswith(f"The disk of {tmp_path} has ")
    lost = tmp_path / "file"
    lost.touch()
    monkeypatch.setattr(health, "default_storage", FileSystemStorage(lost / "below"))
    assert "NotADirectoryError" in health.probe()["storage"]


def test_a_part_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, redis_url: str) -> None:
    from threading import Event

    over = Event()
    monkeypatch.setattr(health, "PATIENCE", 1)
    monkeypatch.setattr(health, "_PARTS", {"storage": lambda: str(over.wait(20)), "redis": lambda: ""})
    try:
        assert health.probe() == {"storage": "It has not answered within 1 s.", "redis": ""}
    finally:
        over.set()
