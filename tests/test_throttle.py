"""Guessing passwords: slowed, refused, and never a way to lock the real person out for good."""

from __future__ import annotations

import re
import threading
from collections import Counter
from datetime import timedelta

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from experiments.accounts import throttle
from experiments.models import Attempts, AuditEntry

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
    settings.PASSWORD_HASHERS = ["tests.test_throttle.Counting"]
    owner.set_password(RIGHT)
    owner.save()
    Counting.looked = 0
    return Counting


def try_as(client: Client, name: str = "owner", password: str = "wrong", **where: str):
    return client.post("/sign-in/", {"username": name, "password": password}, **where)


def pass_time(**time: int) -> None:
    for row in Attempts.objects.all():
        row.last -= timedelta(**time)
        row.until -= timedelta(**time)
        row.save()


def test_a_thousand_tries_on_one_account_are_refused_and_not_looked_at(client: Client, looks: type[Counting]) -> None:
    answers = [try_as(client) for _ in range(1000)]
    said = Counter(answer.status_code for answer in answers)
    assert said.keys() == {200, 429}
    # Five are free; then each waits twice as long as the one before, while a thousand take a few seconds.
    assert 5 <= said[200] <= 10
    assert looks.looked == said[200], "a refused try costs no hash"
    last = answers[-1]
    assert 1 <= int(last["Retry-After"]) <= throttle.LONGEST.total_seconds()
    page = last.content.decode()
    assert "Too many tries: this one was not looked at." in page
    assert re.search(r"Wait \d+ (second|minute)s?, then try again", page)
    assert 'value="owner"' in page, "what was typed stays"
    assert AuditEntry.objects.filter(verb="sign-in.failed").count() == said[200]


def begin(name: str, address: str) -> int:
    """What the view asks first: seconds to wait."""
    request = RequestFactory().post("/sign-in/", REMOTE_ADDR=address)
    return throttle.begin(request, name).wait


def test_a_thousand_names_from_one_address_are_refused(client: Client, looks: type[Counting]) -> None:
    free = [begin(f"name{number}", "127.0.0.1") for number in range(1000)].count(0)
    assert 30 <= free <= 36
    assert try_as(client, "owner", RIGHT).status_code == 429
    assert looks.looked == 0
    assert try_as(client, "owner", RIGHT, **ELSEWHERE).status_code == 302, "who comes from elsewhere is let in"


def test_a_thousand_addresses_that_try_one_account_are_refused(client: Client, looks: type[Counting]) -> None:
    free = [begin("owner", f"10.0.{n // 250}.{n % 250 + 1}") for n in range(1000)].count(0)
    assert 100 <= free <= 106
    assert Attempts.objects.count() == 2 * free + 1, "a refused try leaves nothing"
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
    assert 5 <= said[200] <= 8


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


def test_waiting_opens_the_door_again_and_refused_tries_do_not_prolong_it(client: Client, looks) -> None:
    for _ in range(20):
        try_as(client)
    wait = int(try_as(client)["Retry-After"])
    pass_time(seconds=wait)
    assert try_as(client, "owner", RIGHT).status_code == 302
    client.post("/sign-out/")
    client.cookies.clear()
    assert [try_as(client).status_code for _ in range(5)] == [200] * 5, "having signed in, one starts anew"


def test_nobody_waits_longer_than_a_quarter_of_an_hour(client: Client, looks) -> None:
    for _ in range(40):
        assert begin("owner", "127.0.0.1") == 0
        pass_time(minutes=15)
    begin("owner", "127.0.0.1")
    assert 890 < begin("owner", "127.0.0.1") <= 900
    row = Attempts.objects.order_by("-count").first()
    assert row
    assert row.count >= 40
    assert row.until - timezone.now() <= timedelta(minutes=15)


def test_counts_are_forgotten_after_a_day(client: Client, looks) -> None:
    for _ in range(20):
        try_as(client)
    pass_time(hours=25)
    try_as(client, "somebody-else", **ELSEWHERE)
    assert set(Attempts.objects.values_list("count", flat=True)) == {1}
    assert [try_as(client).status_code for _ in range(5)] == [200] * 5


def test_signing_in_many_times_from_one_office_closes_nothing(client: Client, looks) -> None:
    for _ in range(35):
        assert try_as(Client(), "owner", RIGHT).status_code == 302
    assert not Attempts.objects.filter(count__gt=0).exists()


@pytest.mark.parametrize("name", ["nobody", "owner", "OWNER", "left", "no-password", "x" * 200, "zero\x00byte", ""])
def test_names_that_nobody_has_are_counted_and_cost_the_same(client: Client, looks: type[Counting], name: str) -> None:
    User.objects.create_user("left", password=RIGHT, is_active=False)
    User.objects.create_user("no-password")
    looks.looked = 0
    said = [try_as(client, name) for _ in range(8)]
    assert [answer.status_code for answer in said][:5] == [200] * 5
    assert said[-1].status_code == 429
    taken_as_a_name = name not in {"zero\x00byte", ""}
    assert looks.looked == (sum(answer.status_code == 200 for answer in said) if taken_as_a_name else 0)


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
    assert 5 <= free <= 8


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
    assert 5 <= said.count(200) <= 8
