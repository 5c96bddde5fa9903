"""Every address, with every method, as everybody, with bodies and headers that nobody sends: nothing breaks, and nobody
gets further than they may. Some of it in every run, all of it with the benches.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import cycle, product
from typing import Any, NamedTuple

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client

from experiments.api import throttling
from tests.support.addresses import NAMED, OPEN, OWN, SHARED
from tests.support.api_operations import OWN as OWN_OPERATIONS
from tests.support.api_operations import operations
from tests.support.api_world import KEY, World, fill
from tests.support.people import member
from tests.support.routes import ALL

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
WRITING = {"POST", "PUT", "PATCH", "DELETE"}
ROLES = ("nobody", "stranger", "viewer", "researcher", "reviewer", "admin")
JSON, FORM, FILES = "application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b"
BODIES = (
    ("", ""),
    (JSON, ""),
    (JSON, "{}"),
    (JSON, "[]"),
    (JSON, "null"),
    (JSON, '{"text": 1e999, "q": NaN, "limits": {"rounds": -1}}'),
    (JSON, '{"text": "\\u0000\\ud800", "pk": 99999999999999999999999}'),
    (JSON, b"\xff\xfe{"),
    (JSON, "[" * 60_000),
    (FORM, ""),
    (FORM, "a%00=%00&text=%00&name=%ff&unit=9" * 20),
    (FORM, "rounds=1e999&cost=-1&unit=" + "9" * 400),
    (FORM, "&" * 3_000),
    (FILES, ""),
    (FILES, b"--b\r\nContent-Disposition: form-data; name=\x00\r\n\r\n\x00\r\n--b--"),
    (FILES, b'--b\r\nContent-Disposition: form-data; name="file"; filename="../\x00"\r\n\r\nPK\x03\x04\r\n--b--'),
    ("multipart/form-data", "x"),
    ("text/xml; charset=none", "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>"),
)
HEADERS: tuple[dict[str, str], ...] = (
    {},
    {"HX-Request": "true", "HX-Target": "\x7f<b>"},
    {"If-None-Match": '*, "x', "If-Match": "W/", "If-Modified-Since": "yesterday"},
    {"Accept": "x/y;q=z", "Accept-Language": "*" * 999, "Accept-Encoding": ";;"},
    {"Cookie": 'sessionid="\\000"; csrftoken=\\; =; a="'},
    {"Authorization": "Bearer"},
    {"Authorization": "Basic \xff"},
    {"X-Forwarded-For": ",,\x7f", "X-Forwarded-Proto": "gopher", "X-HTTP-Method-Override": "DELETE"},
    {"Range": "bytes=9-1,-5", "Idempotency-Key": "\xe9" * 300, "Referer": "javascript:1"},
    {"Host": "elsewhere.example"},
)
QUERIES = (
    "",
    "?page=-1&q=%00&sort=-%ff",
    "?cursor=%f0%9f&limit=1e9&after=-9&wait=x",
    "?" + "run=1&" * 900,
    "?unit=99999999999999999999&what=%00",
)


class Address(NamedTuple):
    """One that there is, and who gets an answer there."""

    path: str
    is_open: bool
    is_own: bool
    """Where every member may write: what is their own."""


def addresses(numbers: dict[str, int], world: World) -> Iterator[Address]:
    numbers = {"token": "x" * 43, "key": KEY, "size": 96, **numbers}  # type: ignore[dict-item]
    known = {"pk": world.run.pk, "number": 1, "key": KEY, "kind": "checks"}
    for name, path in (NAMED | SHARED).items():
        yield Address(path.format_map(numbers), name in SHARED, name in OWN)
    for route, pattern in ALL:
        if pattern.name in OPEN and "<" not in route:
            yield Address(f"/{route}", True, True)
    own = {path for path, operation in operations() if operation.view_func.__name__ in OWN_OPERATIONS}
    for path, _ in operations():
        yield Address(f"/api/v1{path.format_map(known)}", False, path in own)
    yield from (
        Address(path, True, True)
        for path in ("/api/v1/openapi.json", "/api/v1/docs", "/api/v1/docs/notebook", "/api/v1/%ff", "/\x00", "//")
    )


def wrong(address: Address, method: str, role: str, status: int) -> bool:
    """Whether an answer is a fault, or one too much for this person."""
    if status >= 500:
        return True
    answered = 200 <= status < 300
    if address.is_open or not answered:
        return False
    return role in {"nobody", "stranger"} or (role == "viewer" and method in WRITING and not address.is_own)


@pytest.fixture
def quiet() -> Iterator[None]:
    """Thousands of refusals are no news."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def clients(owner: User, stranger: User, teammate: User) -> dict[str, Client]:
    people = {"stranger": stranger, "viewer": teammate, "researcher": owner}
    people |= {role: member(role, role.upper()) for role in ("reviewer", "admin")}
    made = {role: Client(raise_request_exception=False) for role in ROLES}
    for role, person in people.items():
        made[role].force_login(person)
    return made


@pytest.mark.parametrize("every", [97, pytest.param(1, marks=pytest.mark.more)])
def test_nothing_breaks_and_nobody_gets_further(
    clients: dict[str, Client],
    ids: dict[str, int],
    owner: User,
    redis_url: str,
    quiet: None,
    monkeypatch: pytest.MonkeyPatch,
    every: int,
) -> None:
    monkeypatch.setattr(throttling, "LIMIT", 10**7)
    found = list(addresses(ids, fill(owner)))
    tried, faults = 0, []
    odd = zip(cycle(BODIES), cycle(HEADERS), cycle(QUERIES), strict=False)
    walk = list(product(found, METHODS, ROLES))[::every]
    for (address, method, role), (body, headers, query) in zip(walk, odd, strict=False):
        with transaction.atomic():
            status = ask(clients[role], method, address.path + query, body, headers)
            transaction.set_rollback(True)
        tried += 1
        if wrong(address, method, role, status):
            faults.append((role, method, address.path, query[:40], body[0], body[1][:60], headers, status))
    print(f"\n{tried} requests, {len(faults)} faults")
    assert faults == []


def ask(client: Client, method: str, path: str, body: tuple[str, Any], headers: dict[str, str]) -> int:
    """The status of the answer; the session is sent beside a cookie of one's own."""
    kept = client.cookies.copy()
    given = {} if method in {"GET", "HEAD"} else {"content_type": body[0] or JSON, "data": body[1]}
    status = int(client.generic(method, path, headers=headers, **given).status_code)
    client.cookies = kept
    return status
