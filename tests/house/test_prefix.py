"""The path below which the site lies: the application is told the same whether or not the proxy removed it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.urls import get_script_prefix, set_script_prefix

from maia_web import settings
from maia_web.prefix import Prefixed
from tests import ROOT


@pytest.fixture(autouse=True)
def _root() -> Any:
    yield
    set_script_prefix("/")


async def told(prefix: str, path: str) -> tuple[str, str, str]:
    """The path, the root path and the beginning of links that the application sees."""
    seen: list[tuple[str, str, str]] = []

    async def application(scope: dict[str, Any], _: Any, __: Any) -> None:
        seen.append((scope["path"], scope.get("root_path", ""), get_script_prefix()))

    await Prefixed(application, prefix)({"type": "websocket", "path": path}, None, None)
    return seen[0]


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ("/maia/runs/", "/maia/runs/"),
        ("/runs/", "/maia/runs/"),
        ("/maia", "/maia"),
        ("/", "/maia/"),
        ("/maiami/", "/maia/maiami/"),
        ("/healthz", "/maia/healthz"),
    ],
)
async def test_every_path_begins_with_the_prefix_once(asked: str, path: str) -> None:
    assert await told("/maia", asked) == (path, "/maia", "/maia/")


async def test_without_a_prefix_nothing_changes() -> None:
    assert await told("", "/runs/") == ("/runs/", "", "/")


@pytest.mark.parametrize("raw", ["", "/maia", "/tools/maia-2.0", "/~team/_maia"])
def test_a_prefix_is_a_path(monkeypatch: pytest.MonkeyPatch, raw: str) -> None:
    monkeypatch.setenv("MAIA_TRIAL", raw)
    assert settings.prefix("MAIA_TRIAL") == raw


@pytest.mark.parametrize(
    "raw", ["maia", "/", "/maia/", "//maia", "/../maia", "/a/..", "/a/./b", "/a?b", "/a b", "/a#b"]
)
def test_what_is_no_path_stops_the_start(monkeypatch: pytest.MonkeyPatch, raw: str) -> None:
    monkeypatch.setenv("MAIA_TRIAL", raw)
    with pytest.raises(ImproperlyConfigured, match=r"^MAIA_TRIAL='.*' is no path .* Write /maia, or unset it"):
        settings.prefix("MAIA_TRIAL")


def test_no_template_or_script_asks_for_an_address_of_the_root() -> None:
    """They would lead out of the site where it lies below a path."""
    written = re.compile(r"(?:href|src|action|hx-get|hx-post)=[\"']/|\b(?:fetch|assign)\([\"'`]/")
    files = [*ROOT.glob("templates/**/*.html"), *ROOT.glob("static/js/**/*.js")]
    assert len(files) > 100
    found = {str(path.relative_to(ROOT)): written.findall(path.read_text()) for path in files}
    assert {name: places for name, places in found.items() if places} == {}
