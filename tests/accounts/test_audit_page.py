"""Settings, audit: what the address filters, pages by cursor, links, and the files."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connections
from django.test import AsyncClient, Client
from django.utils import timezone

from experiments.accounts import audit_query
from experiments.models import AuditEntry, Run
from tests.support.builders import make_run
from tests.support.people import member


@pytest.fixture
def as_admin(client: Client, admin: User) -> Client:
    """One entry says that the admin signed in."""
    client.force_login(admin)
    return client


@pytest.fixture
def run(owner: User) -> Run:
    return make_run(owner)


def entry(name: str = "owner", verb: str = "run.paused", days: int = 0, **more: object) -> AuditEntry:
    return AuditEntry.objects.create(name=name, verb=verb, time=timezone.now() - timedelta(days=days), **more)


def listed(client: Client, query: str = "") -> list[int]:
    """Keys of the entries on the page, in its order."""
    page = client.get(f"/settings/audit/?{query}")
    assert page.status_code == 200
    return [each.pk for each in page.context["page"].entries]


def test_an_entry_says_all_that_is_known_and_links_to_its_run(as_admin: Client, run: Run) -> None:
    entry(row_kind="run", row_pk=run.pk, row_words=str(run), details={"why": "<b>so</b>"}, address="203.0.113.7")
    page = as_admin.get("/settings/audit/?verb=run.paused").content.decode()
    assert f'<a href="/runs/{run.pk}/">{run}</a>' in page
    assert "&lt;b&gt;so&lt;/b&gt;" in page
    assert "203.0.113.7" in page


@pytest.mark.parametrize("details", [{"items": 3, "keys": "x", "values": None}, {}, [1], "text", 7])
def test_details_are_shown_whatever_their_names(as_admin: Client, details: object) -> None:
    entry(verb="queue.created", details=details)
    page = as_admin.get("/settings/audit/")
    assert page.status_code == 200
    if isinstance(details, dict) and details:
        assert "<dt>items</dt><dd>3</dd>" in page.content.decode()


def test_a_run_that_is_gone_is_no_link(as_admin: Client) -> None:
    entry(row_kind="run", row_pk=7, row_words="run 7: toybox")
    page = as_admin.get("/settings/audit/").content.decode()
    assert "run 7: toybox" in page
    assert "/runs/7/" not in page


def test_the_address_filters_by_person_verb_row_and_days(as_admin: Client) -> None:
    theirs, old = entry("teammate"), entry("teammate", days=10)
    stopped = entry(verb="run.stopped", row_kind="run", row_pk=7)
    system = entry("")
    today = timezone.now().date()
    assert listed(as_admin, "who=teammate") == [theirs.pk, old.pk]
    assert listed(as_admin, "who=-") == [system.pk]
    assert listed(as_admin, "verb=run.stopped") == [stopped.pk]
    assert listed(as_admin, "kind=run&row=7") == [stopped.pk]
    assert listed(as_admin, f"who=teammate&since={today - timedelta(days=1)}") == [theirs.pk]
    assert listed(as_admin, f"who=teammate&until={today - timedelta(days=1)}") == [old.pk]
    assert listed(as_admin, "who=nobody-of-that-name") == []


@pytest.mark.parametrize("query", ["row=x", "row=-1", "since=tomorrow", "until=9999-12-31", "since=2026-13-77"])
def test_a_filter_that_makes_no_sense_is_left_out_and_said(as_admin: Client, query: str) -> None:
    page = as_admin.get(f"/settings/audit/?{query}")
    assert page.status_code == 200
    assert "Left out." in page.content.decode()
    assert len(page.context["page"].entries) == 1


@pytest.mark.parametrize("query", ["before=x", "before=999999", "before=-3", "who=%00", "verb=" + "x" * 5000])
def test_a_senseless_address_is_no_error(as_admin: Client, query: str) -> None:
    assert as_admin.get(f"/settings/audit/?{query}").status_code == 200


def test_pages_follow_each_other_without_gaps_though_entries_are_added(as_admin: Client) -> None:
    moment = timezone.now()
    made = [AuditEntry.objects.create(name="owner", verb="run.paused", time=moment) for _ in range(120)]
    seen, query = [], "who=owner"
    while query:
        page = as_admin.get(f"/settings/audit/?{query}").context["page"]
        seen += [each.pk for each in page.entries]
        query = page.older
        entry()
    assert seen == [each.pk for each in reversed(made)]


def test_a_page_takes_as_many_queries_however_much_it_shows(
    as_admin: Client, run: Run, django_assert_max_num_queries
) -> None:
    entry(row_kind="run", row_pk=run.pk)
    with django_assert_max_num_queries(40) as few:
        as_admin.get("/settings/audit/")
    for _ in range(60):
        entry(row_kind="run", row_pk=run.pk, user=run.owner)
    with django_assert_max_num_queries(len(few)):
        as_admin.get("/settings/audit/")


def test_values_to_choose_from_are_found_by_leaps(as_admin: Client) -> None:
    for verb in ("run.stopped", "run.paused", "run.paused"):
        entry(verb=verb)
    assert audit_query.distinct("verb") == ["person.signed-in", "run.paused", "run.stopped"]
    assert audit_query.distinct("row_kind") == ["user"]


def test_htmx_is_sent_the_list_alone(as_admin: Client) -> None:
    page = as_admin.get("/settings/audit/", headers={"HX-Request": "true"}).content.decode()
    assert page.startswith('<div id="entries">')


def test_what_matches_nothing_is_said(as_admin: Client) -> None:
    assert "Nothing matches" in as_admin.get("/settings/audit/?who=nobody").content.decode()


# --- files ---


def fetched(user: User, address: str) -> str:
    """The file as an ASGI server sends it."""

    async def fetch() -> str:
        client = AsyncClient()
        await client.aforce_login(user)
        response = await client.get(address)
        assert response.status_code == 200
        text = b"".join([piece async for piece in response.streaming_content]).decode("utf-8-sig")
        await sync_to_async(connections.close_all)()  # those of the thread that read
        return text

    return asyncio.run(fetch())


@pytest.mark.django_db(transaction=True)
def test_all_that_match_come_as_a_file_and_that_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_query, "CHUNK", 4)
    admin = member("admin", "ADMIN")
    made = [entry(verb="run.paused", details={"why": "=1+1"}, row_words="=cmd()") for _ in range(10)]
    lines = [json.loads(line) for line in fetched(admin, "/settings/audit/audit.jsonl?verb=run.paused").splitlines()]
    assert [line["time"] for line in lines] == [each.time.isoformat() for each in reversed(made)]
    assert lines[0]["details"] == {"why": "=1+1"}
    rows = list(csv.DictReader(io.StringIO(fetched(admin, "/settings/audit/audit.csv?verb=run.paused"))))
    assert len(rows) == 10
    assert rows[0]["row_words"] == "'=cmd()", "a spreadsheet runs no formula of it"
    taken = AuditEntry.objects.filter(verb="audit.exported")
    assert [each.details for each in taken.order_by("pk")] == [
        {"format": "jsonl", "filter": "verb=run.paused"},
        {"format": "csv", "filter": "verb=run.paused"},
    ]


def test_there_is_no_file_of_another_kind(as_admin: Client) -> None:
    assert as_admin.get("/settings/audit/audit.exe").status_code == 404
