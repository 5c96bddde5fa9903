"""The address /mcp: who comes in, and who is told why not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client

from experiments.api import throttling
from experiments.models import ApiToken, TokenScope
from maia_web.asgi import routes
from maia_web.prefix import Prefixed
from tests.support.mcp_client import connected, data_of, issue
from tests.support.served import served

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_redis")]
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.fixture
def site() -> Iterator[str]:
    with served() as url:
        yield url


def post(url: str, token: str = "", body: bytes = b"", **headers: str) -> requests.Response:
    """What a client is answered that lists the tools."""
    own = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    own |= {"Authorization": f"Bearer {token}"} if token else {}
    return requests.post(f"{url}/mcp", body or json.dumps(LIST), headers=own | headers, timeout=30)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_made_with_the_sdk_reads(owner: User, site: str, mode: str) -> None:
    token = issue(owner, TokenScope.READ)

    async def read() -> None:
        async with connected(site, token, mode) as client:
            tools = await client.list_tools()
            assert "search" in {tool.name for tool in tools.tools}
            found = data_of(await client.call_tool("search", {"words": "red ball"}))
            assert found["ranked"] is True

    async_to_sync(read)()


def test_a_good_token_comes_in_and_no_other(owner: User, site: str) -> None:
    good, revoked = issue(owner), issue(owner)
    found = ApiToken.find(revoked)
    assert found
    found.revoke()
    assert post(site, good).status_code == 200
    for token in ("", "maia_unknown", revoked):
        refused = post(site, token)
        assert (refused.status_code, refused.json()["status"]) == (401, 401)
        assert refused.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_token_revoked_between_two_calls_ends_them(owner: User, site: str) -> None:
    token = issue(owner)
    assert post(site, token).status_code == 200
    found = ApiToken.find(token)
    assert found
    found.revoke()
    assert post(site, token).status_code == 401


def test_a_stranger_finds_nothing(site: str) -> None:
    assert post(site, issue(User.objects.create_user("stranger"))).status_code == 404


def test_a_session_is_no_token(owner: User, as_owner: Client, site: str) -> None:
    cookies = "; ".join(f"{name}={each.value}" for name, each in as_owner.cookies.items())
    assert cookies
    assert post(site, "", Cookie=cookies).status_code == 401


def test_another_site_s_page_and_host_are_refused(owner: User, site: str) -> None:
    token = issue(owner)
    assert post(site, token, Origin=site).status_code == 200
    assert post(site, token, Origin="https://elsewhere.example").status_code == 403
    for odd in ("null", "http://[", "\xff", f"{site}.example"):
        assert post(site, token, Origin=odd).status_code == 403
    assert post(site, token, Host="elsewhere.example").status_code == 403


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_no_session_is_opened_or_closed(owner: User, site: str, method: str) -> None:
    headers = {"Authorization": f"Bearer {issue(owner)}", "Accept": "text/event-stream"}
    answer = requests.request(method, f"{site}/mcp", headers=headers, timeout=30)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


def test_ten_megabytes_are_refused_before_they_are_read(owner: User, site: str) -> None:
    call = {"name": "run_experiment", "arguments": {"run": 1, "program": "#" * 10_000_000}}
    body = json.dumps(LIST | {"method": "tools/call", "params": call}).encode()
    answer = post(site, issue(owner), body)
    assert answer.status_code == 413
    assert "1,048,576 bytes" in answer.json()["detail"]


def test_ten_megabytes_of_unknown_length_are_refused_too(owner: User, site: str) -> None:
    headers = {"Authorization": f"Bearer {issue(owner)}", "Content-Type": "application/json", "Accept": "*/*"}
    answer = requests.post(f"{site}/mcp", (b"#" * 100_000 for _ in range(100)), headers=headers, timeout=30)
    assert answer.status_code == 411


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"jsonrpc": "2.0"}', b"\xff\xfe", b'"' + b"[" * 50_000])
def test_what_is_no_message_is_told(owner: User, site: str, body: bytes) -> None:
    assert post(site, issue(owner), body).status_code == 400


def test_it_lies_below_the_prefix(owner: User, settings: Any) -> None:
    token = issue(owner)
    settings.PREFIX = settings.FORCE_SCRIPT_NAME = "/maia"
    with served(Prefixed(routes, "/maia")) as url:
        assert post(f"{url}/maia", token).status_code == 200
        assert post(url, token).status_code == 200


@pytest.mark.usefixtures("redis_url")
def test_too_many_requests_are_told_when_to_go_on(owner: User, site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttling, "LIMIT", 2)
    monkeypatch.setattr(throttling, "WINDOW", 10**9)  # a minute may end between two requests
    token = issue(owner)
    assert [post(site, token).status_code for _ in range(2)] == [200, 200]
    answer = post(site, token)
    assert (answer.status_code, answer.headers["Retry-After"].isdigit()) == (429, True)
