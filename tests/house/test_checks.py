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
    settings.TRUSTED_PROXIES = 1
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


def test_a_state_folder_that_others_may_read_is_told(settings, tmp_path: Path) -> None:
    settings.STATE = tmp_path
    tmp_path.chmod(0o755)
    assert f"chmod 700 {tmp_path}" in str(found()["maia.W007"].hint)
    tmp_path.chmod(0o770)
    assert found() == {}


def test_a_worker_without_a_thread_is_an_error(settings) -> None:
    settings.WORKER_THREADS = 0
    assert found()["maia.E003"].is_serious()


def test_behind_a_proxy_that_is_not_counted_visitors_are_not_told_apart(settings) -> None:
    settings.HTTPS = True
    assert "MAIA_TRUSTED_PROXIES" in found()["maia.W006"].msg


@pytest.mark.parametrize("name", ["SESSION_COOKIE_AGE", "SESSION_LENGTH"])
def test_sessions_that_end_at_once_are_an_error(settings, name: str) -> None:
    setattr(settings, name, 0)
    assert found()["maia.E004"].is_serious()


def test_single_sign_on_wants_its_secret_and_says_who_joins(settings) -> None:
    settings.OIDC_ISSUER = "https://id.example.org"
    assert "MAIA_OIDC_CLIENT_SECRET" in found()["maia.W004"].msg
    settings.OIDC_CLIENT_SECRET = "secret"
    assert found() == {}
    settings.OIDC_ROLE = "viewer"
    assert "Every user with an account at https://id.example.org joins" in found()["maia.W005"].msg
    settings.OIDC_DOMAINS = ["example.org"]
    assert found() == {}
