"""Guessing passwords: slowed, refused, and never a way to lock the real person out for good."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from experiments.accounts import throttle
from experiments.models import AuditEntry, SignInAttempts

pytestmark = pytest.mark.django_db

RIGHT = "correct horse battery"
ELSEWHERE = {"REMOTE_ADDR": "198.51.100.7"}


class Counting(MD5PasswordHasher):
    """Counts how often a password was looked at."""

    looked = 0

    def encode(self, password: str, salt: str) -> str:
        Counting.looked += 1
        return super().encode(password, salt)


@pytest.fixture
def looks(settings, owner: User) -> type[Counting]:
    settings.PASSWORD_HASHERS = ["tests.accounts.test_throttle.Counting"]
    owner.set_password(RIGHT)
    owner.save()
    Counting.looked = 0
    return Counting


def try_as(client: Client, name: str = "owner", password: str = "wrong", **where: str):
    return client.post("/sign-in/", {"username": name, "password": password}, **where)


class Clock:
    """Stands still, so that tries come at the same moment, until a test lets time pass."""

    def __init__(self) -> None:
        self.time = timezone.now()

    def __call__(self) -> datetime:
        return self.time

    def pass_time(self, **time: int) -> None:
        self.time += timedelta(**time)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(throttle, "clock", clock)
    return clock


def test_a_thousand_tries_on_one_account_are_refused_and_not_looked_at(client: Client, looks: type[Counting]) -> None:
    answers = [try_as(client) for _ in range(1000)]
    said = Counter(answer.status_code for answer in answers)
    assert said == {200: 6, 429: 994}
    assert looks.looked == 6, "a refused try costs no hash"
    last = answers[-1]
    assert last["Retry-After"] == "1"
    page = last.content.decode()
    assert "Too many tries: this one was not looked at." in page
    assert "Wait 1 second, then try again" in page
    assert 'value="owner"' in page, "what was typed stays"
    assert AuditEntry.objects.filter(verb="sign-in.failed").count() == 6


def begin(name: str, address: str) -> int:
    """What the view asks first: seconds to wait."""
    request = RequestFactory().post("/sign-in/", REMOTE_ADDR=address)
    return throttle.start_try(request, name).wait


def test_a_thousand_names_from_one_address_are_refused(client: Client, looks: type[Counting]) -> None:
    free = [begin(f"name{number}", "127.0.0.1") for number in range(1000)].count(0)
    assert free == 31
    assert try_as(client, "owner", RIGHT).status_code == 429
    assert looks.looked == 0
    assert try_as(client, "owner", RIGHT, **ELSEWHERE).status_code == 302, "who comes from elsewhere is let in"


def test_a_thousand_addresses_that_try_one_account_are_refused(client: Client, looks: type[Counting]) -> None:
    free = [begin("owner", f"10.0.{n // 250}.{n % 250 + 1}") for n in range(1000)].count(0)
    assert free == 101
    assert SignInAttempts.objects.count() == 2 * free + 1, "a refused try leaves nothing"
    answer = try_as(client, "owner", RIGHT, **ELSEWHERE)
    assert answer.status_code == 429
    assert looks.looked == 0


def test_the_person_gets_in_from_a_browser_they_used_before_whatever_strangers_do(
    client: Client, looks: type[Counting]
) -> None:
    assert try_as(client, "owner", RIGHT).status_code == 302
    client.post("/sign-out/")
    for number in range(120):
        begin("owner", f"10.0.0.{number + 1}")
    assert try_as(Client(), "owner", RIGHT, **ELSEWHERE).status_code == 429, "a browser that nobody knows has to wait"
    assert try_as(client, "owner", RIGHT).status_code == 302


def test_a_known_browser_is_no_way_to_guess_either(client: Client, looks: type[Counting]) -> None:
    try_as(client, "owner", RIGHT)
    client.post("/sign-out/")
    said = Counter(try_as(client).status_code for _ in range(20))
    assert said == {200: 6, 429: 14}


def test_the_cookie_of_one_account_is_none_for_another_and_cannot_be_made_up(
    client: Client, teammate: User, looks: type[Counting]
) -> None:
    try_as(client, "owner", RIGHT)
    client.post("/sign-out/")
    known = client.cookies[throttle.COOKIE].value
    assert client.cookies[throttle.COOKIE]["httponly"]
    for _ in range(6):
        try_as(client, "teammate")
    assert try_as(client, "teammate").status_code == 429
    assert try_as(Client(), "teammate").status_code == 429, "counted with everybody at this address"
    for _ in range(6):
        try_as(Client())
    forger = Client()
    forger.cookies[throttle.COOKIE] = known[:-2] + "xx"
    assert try_as(forger, "owner", RIGHT).status_code == 429
    assert try_as(client, "owner", RIGHT).status_code == 302


def test_each_try_waits_twice_as_long_as_the_one_before_up_to_a_quarter_of_an_hour(
    client: Client, looks: type[Counting], clock: Clock
) -> None:
    waits = []
    for _ in range(20):
        assert begin("owner", "127.0.0.1") == 0
        waits.append(begin("owner", "127.0.0.1") if len(waits) >= 5 else 0)
        clock.pass_time(seconds=waits[-1])
    assert waits == [0] * 5 + [1, 2, 4, 8, 16, 32, 64, 128, 256, 512] + [900] * 5
    begin("owner", "127.0.0.1")
    assert "Wait 15 minutes" in try_as(client).content.decode()
    clock.pass_time(minutes=5)
    refused = try_as(client, "owner", RIGHT)
    assert (refused.status_code, refused["Retry-After"]) == (429, "600"), "refused tries prolong nothing"
    clock.pass_time(minutes=10)
    assert try_as(client, "owner", RIGHT).status_code == 302
    client.post("/sign-out/")
    client.cookies.clear()
    assert [try_as(client).status_code for _ in range(5)] == [200] * 5, "having signed in, one starts anew"


def test_counts_are_forgotten_after_a_day(client: Client, looks: type[Counting], clock: Clock) -> None:
    for _ in range(20):
        try_as(client)
    clock.pass_time(hours=25)
    try_as(client, "somebody-else", **ELSEWHERE)
    assert set(SignInAttempts.objects.values_list("count", flat=True)) == {1}
    assert [try_as(client).status_code for _ in range(5)] == [200] * 5


def test_signing_in_many_times_from_one_office_closes_nothing(client: Client, looks) -> None:
    for _ in range(35):
        assert try_as(Client(), "owner", RIGHT).status_code == 302
    assert not SignInAttempts.objects.filter(count__gt=0).exists()


@pytest.mark.parametrize("name", ["nobody", "owner", "OWNER", "left", "no-password", "x" * 200, "zero\x00byte", ""])
def test_names_that_nobody_has_are_counted_and_cost_the_same(client: Client, looks: type[Counting], name: str) -> None:
    User.objects.create_user("left", password=RIGHT, is_active=False)
    User.objects.create_user("no-password")
    looks.looked = 0
    said = [try_as(client, name) for _ in range(8)]
    assert [answer.status_code for answer in said][:5] == [200] * 5
    assert said[-1].status_code == 429
    assert looks.looked == (sum(answer.status_code == 200 for answer in said) if name else 0)


def test_other_ways_to_write_a_name_are_no_way_around(client: Client, looks: type[Counting]) -> None:
    wide = "\uff4f\uff57\uff4e\uff45\uff52"
    assert try_as(client, wide, RIGHT).status_code == 302, "Django takes it for the same name"
    client = Client()
    ways = ["owner", " owner", "owner\t", wide, "\u2002owner", "ow\uff4eer", "owner ", "\uff4fwner"]
    assert [try_as(client, name).status_code for name in ways] == [200] * 6 + [429] * 2


def test_the_number_of_queries_tells_nothing_of_who_exists(client: Client, looks) -> None:
    counts = []
    for name in ("owner", "nobody"):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            try_as(client, name)
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_addresses_of_one_network_of_version_6_are_one(client: Client, looks) -> None:
    free = [begin("owner", f"2001:db8::{number:x}") for number in range(1, 60)].count(0)
    assert free == 6


@pytest.mark.django_db(transaction=True)
def test_tries_at_the_same_moment_are_counted_one_by_one(looks: type[Counting]) -> None:
    said: list[int] = []

    def attack() -> None:
        said.extend(try_as(Client()).status_code for _ in range(5))
        connection.close()

    threads = [threading.Thread(target=attack) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 40
    assert said.count(200) == 6
