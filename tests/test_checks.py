"""System checks: each finds its trouble, names it, and says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core import checks


def found() -> dict[str, checks.CheckMessage]:
    """Our own messages: id -> message."""
    return {message.id or "": message for message in checks.run_checks() if str(message.id).startswith("maia.")}


def test_a_plain_installation_has_nothing_to_say() -> None:
    assert found() == {}


def test_behind_https_the_key_must_not_come_from_a_file(settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.HTTPS = True
    assert "MAIA_SECRET_KEY" in str(found()["maia.W001"].hint)
    monkeypatch.setenv("MAIA_SECRET_KEY", "long and random")
    assert found() == {}


def test_debug_pages_on_a_server_are_an_error(settings) -> None:
    settings.HTTPS = settings.DEBUG = True
    assert found()["maia.E001"].is_serious()


def test_a_state_folder_that_is_a_file_is_an_error(settings, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings.STATE = tmp_path / "file" / "var"
    assert str(settings.STATE) in found()["maia.E002"].msg
    settings.STATE = tmp_path / "not" / "yet" / "there"
    assert found() == {}


def test_a_worker_without_a_thread_is_an_error(settings) -> None:
    settings.WORKER_THREADS = 0
    assert found()["maia.E003"].is_serious()
