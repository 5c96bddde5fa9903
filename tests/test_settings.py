"""Settings come from the environment, are strict, and have safe defaults."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from maia_web import settings


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIA_TRIAL", "")
    assert settings.text("MAIA_TRIAL", "default") == "default"
    assert settings.number("MAIA_TRIAL", 7) == 7
    assert settings.switch("MAIA_TRIAL", default=True) is True


@pytest.mark.parametrize("raw", ["-1", "nan", "inf", "seven"])
def test_a_number_is_finite_and_not_negative(monkeypatch: pytest.MonkeyPatch, raw: str) -> None:
    monkeypatch.setenv("MAIA_TRIAL", raw)
    with pytest.raises(ImproperlyConfigured, match="MAIA_TRIAL"):
        settings.number("MAIA_TRIAL", 7)


def test_a_list_is_split_at_commas_and_trimmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIA_TRIAL", " a.example.org , ,b.example.org")
    assert settings.words("MAIA_TRIAL") == ["a.example.org", "b.example.org"]


def test_the_secret_key_is_made_once_and_only_its_owner_may_read_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("MAIA_SECRET_KEY", raising=False)
    key = settings.secret_key(tmp_path / "state")
    assert len(key) >= 50
    assert settings.secret_key(tmp_path / "state") == key
    assert (tmp_path / "state" / "secret_key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["secret_key"]


def test_a_database_url_may_hold_escaped_characters() -> None:
    found = settings.database("postgres://a%40b:p%2Fw@db.example.org:5433/maia")
    assert (found["USER"], found["PASSWORD"], found["HOST"], found["PORT"], found["NAME"]) == (
        "a@b",
        "p/w",
        "db.example.org",
        "5433",
        "maia",
    )
    assert settings.database("sqlite:////var/lib/maia.sqlite3")["NAME"] == "/var/lib/maia.sqlite3"


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("", ""),
        ("https://id.example.org/", "https://id.example.org"),
        ("https://id.example.org/realms/a/.well-known/openid-configuration", "https://id.example.org/realms/a"),
        ("http://127.0.0.1:9000", "http://127.0.0.1:9000"),
    ],
)
def test_an_issuer_is_an_address(url: str, kept: str) -> None:
    assert settings.issuer(url, "client") == kept


@pytest.mark.parametrize(
    ("url", "client"), [("http://id.example.org", "x"), ("id.example.org", "x"), ("https://", "x")]
)
def test_an_issuer_without_https_stops_the_start(url: str, client: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="MAIA_OIDC_ISSUER"):
        settings.issuer(url, client)


def test_an_issuer_without_a_client_stops_the_start() -> None:
    with pytest.raises(ImproperlyConfigured, match="MAIA_OIDC_CLIENT_ID"):
        settings.issuer("https://id.example.org", "")
