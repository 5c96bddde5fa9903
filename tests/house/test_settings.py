"""Settings come from the environment, are strict, and have safe defaults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from django.core.exceptions import ImproperlyConfigured

from maia_web import addresses, settings, state
from tests import ROOT
from workers.errors import MissingPart
from workers.weights import find_device


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


def test_a_number_that_must_be_above_zero_says_what_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIA_TRIAL", "0")
    assert settings.number("MAIA_TRIAL", 7) == 0
    with pytest.raises(ImproperlyConfigured, match="MAIA_TRIAL='0' is not a number of 1 or more"):
        settings.number("MAIA_TRIAL", 7, least=1)


@pytest.mark.parametrize("raw", ["banana", "cuda:", "cuda:one", "CPU", "mps"])
def test_a_device_that_does_not_exist_stops_the_start(monkeypatch: pytest.MonkeyPatch, raw: str) -> None:
    monkeypatch.setenv("MAIA_TRIAL", raw)
    with pytest.raises(ImproperlyConfigured, match=f"MAIA_TRIAL='{raw}' is none of auto, cpu, cuda"):
        settings.device("MAIA_TRIAL", "auto")


def test_networks_run_on_what_pytorch_has_and_a_gpu_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [settings.device("MAIA_TRIAL", name) for name in ("auto", "cuda:12")] == ["auto", "cuda:12"]
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    assert find_device("auto") == ("cuda" if count else "cpu")
    assert find_device("cpu") == "cpu"
    with monkeypatch.context() as elsewhere:  # a machine with two GPUs
        elsewhere.setattr(torch.cuda, "is_available", lambda: True)
        elsewhere.setattr(torch.cuda, "device_count", lambda: 2)
        assert [find_device(name) for name in ("auto", "cuda:1", "cpu")] == ["cuda", "cuda:1", "cpu"]
        with pytest.raises(MissingPart, match="only 2 of them"):
            find_device("cuda:2")
    with pytest.raises(MissingPart, match=r"MAIA_DEVICE='cuda:99' asks for an NVIDIA GPU.*Unset it"):
        find_device("cuda:99")


def test_a_list_is_split_at_commas_and_trimmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIA_TRIAL", " a.example.org , ,b.example.org")
    assert settings.words("MAIA_TRIAL") == ["a.example.org", "b.example.org"]


@pytest.mark.parametrize(
    ("holds", "before", "after", "umask"),
    [
        ("secret_key", 0o755, 0o700, 0o077),  # made by an earlier version
        ("maia.sqlite3", 0o777, 0o770, 0o007),
        ("", 0o755, 0o700, 0o077),  # a fresh volume
        ("images", 0o2775, 0o2770, 0o007),  # web and worker under two users of a group
        ("notes.txt", 0o755, 0o755, 0o077),  # somebody else's: MAIA_STATE is mistyped
    ],
)
def test_the_state_folder_is_shut_to_others(tmp_path: Path, holds: str, before: int, after: int, umask: int) -> None:
    if holds:
        (tmp_path / holds).touch()
    tmp_path.chmod(before)
    assert state.umask_for(tmp_path) == umask
    assert tmp_path.stat().st_mode & 0o7777 == after


def test_a_new_state_folder_is_its_owners_alone(tmp_path: Path) -> None:
    """Whatever starts first: every command, the web and the worker read the settings."""
    made = tmp_path / "deep" / "state"
    words = "import os; from django.conf import settings; settings.DEBUG; print(oct(os.umask(0)))"
    environment = {"DJANGO_SETTINGS_MODULE": "maia_web.settings", "MAIA_STATE": str(made)}
    done = subprocess.run([sys.executable, "-c", words], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("0o77\n", "")
    assert made.stat().st_mode & 0o777 == 0o700


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


def test_options_of_libpq_and_a_socket_reach_the_driver() -> None:
    found = settings.database("postgres://u:p@/maia?host=/run/postgresql&sslmode=require")
    assert (found["HOST"], found["OPTIONS"]) == ("/run/postgresql", {"sslmode": "require"})


@pytest.mark.parametrize("url", ["postgres://u:s3cret#w@h/d", "postgres://u:s3cret/w@h/d", "postgres://u:s3cret?w@h/d"])
def test_a_password_that_cuts_the_address_short_is_named_and_not_shown(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"MAIA_DATABASE_URL cannot be read.*%23") as refused:
        settings.database(url)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("raw", ["https://maia.example.org", "maia.example.org:8443", "maia.example.org/", "a b"])
def test_a_host_is_a_name_alone(monkeypatch: pytest.MonkeyPatch, raw: str) -> None:
    monkeypatch.setenv("MAIA_TRIAL", f"127.0.0.1, {raw}")
    with pytest.raises(ImproperlyConfigured, match=r"no name of a host.*MAIA_ORIGINS"):
        addresses.hosts("MAIA_TRIAL", "")


def test_hosts_may_be_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIA_TRIAL", "*,.example.org,[::1],10.0.0.1")
    assert addresses.hosts("MAIA_TRIAL", "") == ["*", ".example.org", "[::1]", "10.0.0.1"]


@pytest.mark.parametrize("raw", ["maia.example.org", "https://maia.example.org/maia", "ftp://maia.example.org"])
def test_an_origin_has_a_scheme_and_no_path(monkeypatch: pytest.MonkeyPatch, raw: str) -> None:
    monkeypatch.setenv("MAIA_TRIAL", raw)
    with pytest.raises(ImproperlyConfigured, match="no origin"):
        addresses.origins("MAIA_TRIAL")


def test_an_origin_may_end_with_a_slash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIA_TRIAL", "https://maia.example.org/, https://*.example.org:8443")
    assert addresses.origins("MAIA_TRIAL") == ["https://maia.example.org", "https://*.example.org:8443"]


@pytest.mark.parametrize("raw", ["localhost:6379", "redis://", "http://:s3cret@localhost"])
def test_the_address_of_redis_has_a_scheme(monkeypatch: pytest.MonkeyPatch, raw: str) -> None:
    monkeypatch.setenv("MAIA_TRIAL", raw)
    with pytest.raises(ImproperlyConfigured, match="MAIA_TRIAL starts with neither redis") as refused:
        addresses.redis("MAIA_TRIAL", "")
    assert "s3cret" not in str(refused.value)


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
